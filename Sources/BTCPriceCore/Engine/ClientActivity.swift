import Synchronization

/// When a client last wanted a price: written by the socket's thread, and read by the ticks.
package final class ClientActivity: Sendable {
    private let lastCall: Atomic<Int64>
    private let watchers = Atomic<Int>(0)
    private let awaited = Atomic<Bool>(false)
    /// The clients that watch changes of each currency, and when the last one left.
    private let changes = Mutex<[String: (watchers: Int, left: BootTime)]>([:])

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
    /// - Parameter currencies: Those whose changes between the ticks it watches, too.
    package func watcherCame(changesOf currencies: [String] = []) {
        watchers.add(1, ordering: .sequentiallyConsistent)
        changes.withLock { changes in
            for currency in currencies { changes[currency, default: (0, .min)].watchers += 1 }
        }
    }

    package func watcherLeft(changesOf currencies: [String] = [], at boottime: BootTime) {
        lastCall.store(boottime.milliseconds, ordering: .sequentiallyConsistent)
        changes.withLock { changes in
            for currency in currencies {
                changes[currency, default: (0, .min)].watchers -= 1
                changes[currency]?.left = boottime
            }
        }
        watchers.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// The currencies whose changes a client watches, or did so recently.
    func watchedChanges(lately: Duration, at boottime: BootTime) -> Set<String> {
        changes.withLock { changes in
            changes = changes.filter { $0.value.watchers > 0 || boottime - $0.value.left < lately.wholeMilliseconds }
            return Set(changes.keys)
        }
    }

    /// Whether no client has wanted a price for this time.
    func isIdle(for duration: Duration, at boottime: BootTime) -> Bool {
        watchers.load(ordering: .sequentiallyConsistent) == 0
            && boottime.milliseconds - lastCall.load(ordering: .sequentiallyConsistent) >= duration.wholeMilliseconds
    }

    /// Sets whether ``called(at:)`` returns that the ticks wait for a client.
    func awaitClient(_ isAwaited: Bool) { awaited.store(isAwaited, ordering: .sequentiallyConsistent) }
}
