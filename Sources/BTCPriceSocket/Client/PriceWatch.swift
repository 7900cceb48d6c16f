package import BTCPriceCore
import Dispatch
import Synchronization

/// Watches the prices of a daemon. Uses a blocking connection on its own thread and reconnects if it is lost.
package final class PriceWatch: Sendable {
    /// An event of the watch.
    package enum News: Sendable {
        /// The next state of a currency whose ticks have this interval, milliseconds.
        case state(StateMessage, interval: Int64)
        /// The currencies that the daemon keeps, and its sources that are not requested at the exchanges' own addresses. Before the first
        /// state of a connection, and after a change, which may take ten seconds.
        case kept(currencies: [String], elsewhere: [String])
        /// The daemon can't be reached, or has closed the connection.
        case gone(ClientError)
    }

    private struct Kept: Equatable {
        struct Interval: Equatable {
            let currency: String
            /// Milliseconds.
            let interval: Int64
        }

        var watched: [Interval]
        var currencies: [String]
        var elsewhere: [String]

        var news: News { .kept(currencies: currencies, elsewhere: elsewhere) }
    }

    private enum Bounds {
        static let timeout = Duration.seconds(2)
        /// After this time without a state, or three times the longest tick interval if that is longer, the connection is opened again.
        static let silence = Duration.seconds(15)
        static let pause = Duration.seconds(1)
        /// The longest pause if the daemon sends what can't be used, or too much. Such pauses double.
        static let longestPause = Duration.seconds(300)
        /// After a watch of this length, the next failure counts as the first one.
        static let healthy = Duration.seconds(60)
        /// How often to check whether a reload has changed what the daemon keeps, which a watch does not report.
        static let look = Duration.seconds(10)
    }

    private let currency: Currency?
    private let limit: TrafficLimit?
    private let socket: @Sendable () -> String
    /// Runs one watch at a time, because a watch that was stopped may still wait for the daemon.
    private let queue = DispatchQueue(label: "io.btcpriced.watch")
    private let stopSignal = Mutex<EventSignal?>(nil)

    /// - Parameters:
    ///   - currency: The currency to watch; `nil` for all that the daemon keeps.
    ///   - limit: A limit for what the daemon sends, if it is not trusted.
    package init(_ currency: Currency? = nil, limit: TrafficLimit? = nil, socket: @escaping @Sendable () -> String) {
        self.currency = currency
        self.limit = limit
        self.socket = socket
    }

    /// Starts the watch, or restarts it.
    /// - Parameters:
    ///   - updates: When the daemon sends a state.
    ///   - told: Called with each event, on the watch's thread.
    package func start(_ updates: WatchUpdates, _ told: @escaping @Sendable (News) -> Void) {
        let signal = EventSignal()
        stopSignal.withLock { current in
            current?.set()
            current = signal
        }
        queue.async { self.follow(updates, signal, told) }
    }

    /// Ends the watch. It can be started again.
    package func stop() {
        stopSignal.withLock { $0.take()?.set() }
    }

    private func isCurrent(_ signal: EventSignal) -> Bool { stopSignal.withLock { $0 === signal } }

    private func follow(_ updates: WatchUpdates, _ signal: EventSignal, _ told: (News) -> Void) {
        var limit = limit
        func check(_ bytes: Int) throws(ClientError) {
            let now = ObservationTime.now().boottime
            guard limit?.count(bytes: bytes, at: now) == false, let limit else { return }
            throw .unintelligible(path: socket(), reason: limit.excessText)
        }
        var backoff = Backoff(from: Bounds.pause, to: Bounds.longestPause)
        while isCurrent(signal) {
            var isWatching = false
            var pause = Bounds.pause
            let begun = ContinuousClock.now
            do throws(ClientError) {
                var connection = try connected()
                var kept = try kept(&connection)
                let watched = kept.watched
                let slowest = watched.map(\.interval).max() ?? 0
                try connection.watch(watched.map(\.currency), updates: updates)
                isWatching = true
                if isCurrent(signal) { told(kept.news) }
                var lastLook = ContinuousClock.now
                while isCurrent(signal) {
                    let message = try connection.nextState(
                        timeout: max(Bounds.silence, .milliseconds(3 * slowest)), newestOnly: watched.count == 1,
                        interruption: signal.descriptor, check: check)
                    if isCurrent(signal) {
                        let interval = watched.first { $0.currency == message.state.currency }?.interval
                        told(.state(message, interval: interval ?? slowest))
                    }
                    guard lastLook.duration(to: .now) >= Bounds.look else { continue }
                    lastLook = .now
                    guard let present = look(), present != kept else { continue }
                    if present.watched != watched { break }
                    kept = present
                    if isCurrent(signal) { told(kept.news) }
                }
                continue
            } catch {
                guard isCurrent(signal) else { return }
                switch error {
                // The process received a signal.
                case .interrupted: continue
                // The ticks are paused, or the daemon hangs. If it hangs, it does not respond on the next connection either.
                case .timedOut where isWatching: continue
                // A reload has dropped a currency: those that are kept are listed again.
                case .refused(PriceInterface.unknownCurrency, _) where isWatching && currency == nil:
                    signal.wait(pause)
                    continue
                case .unintelligible:
                    if begun.duration(to: .now) >= Bounds.healthy { backoff.reset() }
                    pause = backoff.next()
                default: break
                }
                told(.gone(error))
            }
            signal.wait(pause)
        }
    }

    private func connected() throws(ClientError) -> PriceConnection {
        try PriceConnection(path: socket(), timeout: Bounds.timeout, longestReply: PriceConnection.longestReply)
    }

    /// Requests what the daemon keeps on a separate connection; `nil` if that fails. If the daemon is gone, the watch reports it.
    private func look() -> Kept? {
        do throws(ClientError) {
            var connection = try connected()
            return try kept(&connection)
        } catch {
            return nil
        }
    }

    private func kept(_ connection: inout PriceConnection) throws(ClientError) -> Kept {
        let all = try connection.listCurrencies().map { Kept.Interval(currency: $0.currency, interval: $0.interval) }
        var kept = Kept(watched: all, currencies: all.map(\.currency), elsewhere: [])
        if let name = currency?.rawValue {
            // If the daemon does not keep it, the watch is refused, with the reason.
            kept.watched = [all.first { $0.currency == name } ?? Kept.Interval(currency: name, interval: 1000)]
        }
        do throws(ClientError) {
            kept.elsewhere = try connection.getStatus().elsewhere
        } catch {
            switch error {
            // A program that only serves prices need not have a status, and that of another version may be another one.
            case .refused, .unintelligible: break
            case .unreachable, .timedOut, .closed, .interrupted: throw error
            }
        }
        return kept
    }
}
