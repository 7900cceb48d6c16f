package import BTCPriceCore
import Dispatch
import Synchronization

/// Watches the prices of a daemon. Uses a blocking connection on its own thread and reconnects if it is lost.
package final class PriceWatch: Sendable {
    /// An event of the watch.
    package enum News: Sendable {
        /// The next state of a currency whose ticks have this interval, milliseconds.
        case state(StateMessage, interval: Int64)
        /// The daemon can't be reached, or has closed the connection.
        case gone(ClientError)
    }

    private typealias Interval = (currency: String, interval: Int64)

    private enum Bounds {
        static let timeout = Duration.seconds(2)
        /// After this time without a state, or three times the longest tick interval if that is longer, the connection is opened again.
        static let silence = Duration.seconds(15)
        static let pause = Duration.seconds(1)
        /// The longest pause if the daemon sends what can't be used, or too much. Such pauses double.
        static let longestPause = Duration.seconds(300)
        /// After a watch of this length, the next failure counts as the first one.
        static let healthy = Duration.seconds(60)
        /// How often to check whether a reload has changed the currencies or their intervals, which a watch does not report.
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
                let intervals = try intervals(&connection)
                let slowest = intervals.map(\.interval).max() ?? 0
                try connection.watch(intervals.map(\.currency), updates: updates)
                isWatching = true
                var lastLook = ContinuousClock.now
                while isCurrent(signal) {
                    let message = try connection.nextState(
                        timeout: max(Bounds.silence, .milliseconds(3 * slowest)), newestOnly: intervals.count == 1,
                        interruption: signal.descriptor, check: check)
                    if isCurrent(signal) {
                        let interval = intervals.first { $0.currency == message.state.currency }?.interval
                        told(.state(message, interval: interval ?? slowest))
                    }
                    guard lastLook.duration(to: .now) >= Bounds.look else { continue }
                    lastLook = .now
                    if let present = look(), !present.elementsEqual(intervals, by: ==) { break }
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

    /// Requests the intervals on a separate connection; `nil` if that fails. If the daemon is gone, the watch reports it.
    private func look() -> [Interval]? {
        do throws(ClientError) {
            var connection = try connected()
            return try intervals(&connection)
        } catch {
            return nil
        }
    }

    /// The currencies to watch, and the intervals of their ticks, milliseconds.
    private func intervals(_ connection: inout PriceConnection) throws(ClientError) -> [Interval] {
        let kept = try connection.listCurrencies().map { ($0.currency, $0.interval) }
        guard let name = currency?.rawValue else { return kept }
        // If the daemon does not keep it, the watch is refused, with the reason.
        return [kept.first { $0.0 == name } ?? (name, 1000)]
    }
}
