import Synchronization

/// When a client last wanted a price: written by the socket's thread, and read by the ticks.
package final class ClientActivity: Sendable {
    private let lastCall: Atomic<Int64>
    private let watchers = Atomic<Int>(0)
    private let awaited = Atomic<Bool>(false)
    private let changeWatchers = Atomic<Int>(0)
    /// When the last client that watched changes left.
    private let lastChangeWatcher = Atomic<Int64>(.min)

    package init(at boottime: BootTime) {
        lastCall = Atomic(boottime.milliseconds)
    }

    /// Records that a client wants the price.
    /// - Returns: Whether the ticks are stopped until one does.
    package func called(at boottime: BootTime) -> Bool {
        lastCall.store(boottime.milliseconds, ordering: .sequentiallyConsistent)
        return awaited.load(ordering: .sequentiallyConsistent)
    }

    /// Records that a client begins to watch.
    /// - Parameter changes: Whether it watches changes between the ticks, too.
    package func watcherCame(changes: Bool = false) {
        watchers.add(1, ordering: .sequentiallyConsistent)
        if changes { changeWatchers.add(1, ordering: .sequentiallyConsistent) }
    }

    package func watcherLeft(changes: Bool = false, at boottime: BootTime) {
        lastCall.store(boottime.milliseconds, ordering: .sequentiallyConsistent)
        if changes {
            lastChangeWatcher.store(boottime.milliseconds, ordering: .sequentiallyConsistent)
            changeWatchers.subtract(1, ordering: .sequentiallyConsistent)
        }
        watchers.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// Whether a client watches changes, or did so recently.
    func watchesChanges(lately: Duration, at boottime: BootTime) -> Bool {
        if changeWatchers.load(ordering: .sequentiallyConsistent) > 0 { return true }
        let last = lastChangeWatcher.load(ordering: .sequentiallyConsistent)
        return last > .min && boottime.milliseconds - last < lately.wholeMilliseconds
    }

    /// Whether no client has wanted a price for this time.
    func isIdle(for duration: Duration, at boottime: BootTime) -> Bool {
        watchers.load(ordering: .sequentiallyConsistent) == 0
            && boottime.milliseconds - lastCall.load(ordering: .sequentiallyConsistent) >= duration.wholeMilliseconds
    }

    /// Sets whether ``called(at:)`` returns that the ticks wait for a client.
    func awaitClient(_ isAwaited: Bool) { awaited.store(isAwaited, ordering: .sequentiallyConsistent) }
}
