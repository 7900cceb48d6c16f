import BTCPriceCore
import Glibc
import Synchronization

/// Passes publications, replies and commands from any thread to the loop's thread.
final class Inbox: Sendable {
    /// What has arrived since the loop last took a delivery.
    struct Delivery {
        /// States for the watchers, in order.
        var fanOut: [(state: PriceState, version: UInt64, isForAll: Bool)] = []
        /// Replies to pending calls, by connection.
        var answers: [(connection: UInt64, uid: UInt32?, answer: CallAnswer)] = []
        var beat: UInt64 = 0
        var limits: ServerLimits?
        var currenciesChanged = false
        var stop = false
    }

    private struct Contents {
        var delivery = Delivery()
        /// The newest state of each currency, in the order of the currencies.
        var states: [(state: PriceState, version: UInt64)] = []
        var version: UInt64 = 0
        var instance: String
        var watchers = 0
        /// The watchers that also watch changes between the ticks.
        var changeWatchers = 0
        var isSignalled = false
    }

    /// Readable if there is a delivery for the loop.
    let signal = EventSignal()
    private let contents: Mutex<Contents>
    private let beaten = Atomic<UInt64>(0)
    /// The version in ``contents``, readable without the lock.
    private let version = Atomic<UInt64>(0)

    init(instance: String) throws(SocketError) {
        contents = Mutex(Contents(instance: instance))
        guard signal.descriptor >= 0 else {
            throw SocketError(description: "cannot make an eventfd: \(systemError(errno))")
        }
    }

    /// Sets the currencies and their order, and ends the watches of others. The state of another currency adds that at the end.
    func change(_ currencies: [String]) {
        deliver { contents in
            contents.states = currencies.compactMap { code in contents.states.first { $0.state.currency == code } }
            contents.version += 1
            version.store(contents.version, ordering: .releasing)
            contents.delivery.currenciesChanged = true
            return true
        }
    }

    /// Sets the daemon whose states are published from now on.
    func change(instance: String) {
        deliver { contents in
            guard contents.instance != instance else { return false }
            contents.instance = instance
            contents.version += 1
            version.store(contents.version, ordering: .releasing)
            return false
        }
    }

    /// Publishes a state. Without watchers the loop is not woken: the next call finds the state.
    /// - Parameter isForAll: Whether it is for all watchers. Any other state is sent only to the watchers of changes.
    func publish(_ state: PriceState, isForAll: Bool) {
        deliver { contents in
            contents.version += 1
            if let index = contents.states.firstIndex(where: { $0.state.currency == state.currency }) {
                contents.states[index] = (state, contents.version)
            } else {
                contents.states.append((state, contents.version))
            }
            version.store(contents.version, ordering: .releasing)
            guard (isForAll ? contents.watchers : contents.changeWatchers) > 0 else { return false }
            // While watchers are served, changes of a currency do not queue up.
            if !isForAll,
                let last = contents.delivery.fanOut.lastIndex(where: { $0.state.currency == state.currency }),
                !contents.delivery.fanOut[last].isForAll
            {
                contents.delivery.fanOut.remove(at: last)
            }
            contents.delivery.fanOut.append((state, contents.version, isForAll))
            return true
        }
    }

    /// - Parameter uid: The caller's user; `nil` for a call that was refused and never counted as pending.
    func answer(_ connection: UInt64, of uid: UInt32?, _ answer: CallAnswer) {
        put { $0.answers.append((connection, uid, answer)) }
    }

    func change(_ limits: ServerLimits) { put { $0.limits = limits } }

    func stop() { put { $0.stop = true } }

    /// Requests a sign of life from the loop.
    func ping(_ number: UInt64) { put { $0.beat = number } }

    /// Adds to the next delivery, and wakes the loop.
    private func put(_ change: (inout Delivery) -> Void) {
        deliver { contents in
            change(&contents.delivery)
            return true
        }
    }

    /// The number of the last ``ping(_:)`` that the loop has processed.
    var lastBeat: UInt64 { beaten.load(ordering: .acquiring) }

    // MARK: The loop's side

    /// Updates `replies` to the newest states.
    func refresh(_ replies: inout ReplyCache) {
        guard version.load(ordering: .acquiring) != replies.version else { return }
        let (states, instance, version) = contents.withLock { ($0.states, $0.instance, $0.version) }
        replies.show(states, of: instance, version: version)
    }

    /// Counts a watcher that came (1) or left (-1). After one came, ``refresh(_:)`` must follow, so that no state is missed.
    func count(_ difference: Int, watcherOf updates: WatchUpdates) {
        contents.withLock { contents in
            contents.watchers += difference
            if updates == .changes { contents.changeWatchers += difference }
        }
    }

    func take() -> Delivery {
        signal.clear()
        return contents.withLock { contents in
            defer {
                contents.delivery = Delivery()
                contents.isSignalled = false
            }
            return contents.delivery
        }
    }

    func beat(_ number: UInt64) {
        beaten.store(number, ordering: .releasing)
    }

    private func deliver(_ change: (inout Contents) -> Bool) {
        let wake = contents.withLock { contents in
            guard change(&contents), !contents.isSignalled else { return false }
            contents.isSignalled = true
            return true
        }
        if wake { signal.set() }
    }
}
