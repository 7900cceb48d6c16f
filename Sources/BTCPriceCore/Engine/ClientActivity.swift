import Synchronization

/// When a client last wanted a price: written by the socket's thread, and read by the ticks.
package final class ClientActivity: Sendable {
    private let lastCall: Atomic<Int64>
    private let watchers = Atomic<Int>(0)
    private let awaited = Atomic<Bool>(false)

    /// - Parameter boottime: The start, `CLOCK_BOOTTIME` in milliseconds.
    package init(at boottime: Int64) {
        lastCall = Atomic(boottime)
    }

    /// A client wants the price.
    /// - Returns: Whether the ticks are stopped until one does.
    package func called(at boottime: Int64) -> Bool {
        lastCall.store(boottime, ordering: .sequentiallyConsistent)
        return awaited.load(ordering: .sequentiallyConsistent)
    }

    /// A client begins to watch.
    package func watcherCame() { watchers.add(1, ordering: .sequentiallyConsistent) }

    /// A client ends watching.
    package func watcherLeft(at boottime: Int64) {
        lastCall.store(boottime, ordering: .sequentiallyConsistent)
        watchers.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// Whether no client has wanted a price for this time.
    func isIdle(for duration: Duration, at boottime: Int64) -> Bool {
        watchers.load(ordering: .sequentiallyConsistent) == 0
            && boottime - lastCall.load(ordering: .sequentiallyConsistent) >= duration.wholeMilliseconds
    }

    /// Sets whether ``called(at:)`` returns that a client is waited for.
    func awaitClient(_ isAwaited: Bool) { awaited.store(isAwaited, ordering: .sequentiallyConsistent) }
}
