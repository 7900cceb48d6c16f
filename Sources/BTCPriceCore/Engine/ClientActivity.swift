import Synchronization

/// When somebody last wanted a price: told by the socket's thread, and looked at by the ticks.
package final class ClientActivity: Sendable {
    private let lastCall: Atomic<Int64>
    private let watchers = Atomic<Int>(0)
    private let awaited = Atomic<Bool>(false)

    /// - Parameter boottime: The start, `CLOCK_BOOTTIME` in milliseconds.
    package init(at boottime: Int64) {
        lastCall = Atomic(boottime)
    }

    /// A client asks for the price.
    /// - Returns: Whether the ticks stand still until one does.
    package func called(at boottime: Int64) -> Bool {
        lastCall.store(boottime, ordering: .sequentiallyConsistent)
        return awaited.load(ordering: .sequentiallyConsistent)
    }

    /// A client watches from now on.
    package func watcherCame() { watchers.add(1, ordering: .sequentiallyConsistent) }

    /// A watcher is gone.
    package func watcherLeft(at boottime: Int64) {
        lastCall.store(boottime, ordering: .sequentiallyConsistent)
        watchers.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// Whether nobody wanted a price for so long.
    func isIdle(for duration: Duration, at boottime: Int64) -> Bool {
        watchers.load(ordering: .sequentiallyConsistent) == 0
            && boottime - lastCall.load(ordering: .sequentiallyConsistent) >= duration.wholeMilliseconds
    }

    /// Has ``called(at:)`` say that it is waited for, or no longer.
    func awaitClient(_ isAwaited: Bool) { awaited.store(isAwaited, ordering: .sequentiallyConsistent) }
}
