import BTCPriceAPI
import BTCPriceCore
import Dispatch
import Synchronization
import Varlink

/// Watches the prices in all currencies that the daemon keeps, while it is started. A blocking connection on a thread of its own.
final class PriceWatch: Sendable {
    enum News: Sendable {
        case state(StateMessage)
        /// The daemon can't be reached, or has closed the connection.
        case gone
    }

    private enum Bounds {
        static let timeout = Duration.seconds(2)
        /// After this time without a state the connection is opened again; longer if the daemon's intervals are.
        static let silence = Duration.seconds(15)
        static let pause = Duration.seconds(1)
    }

    private let socket: @Sendable () -> String
    /// One watch at a time: one that was stopped may still wait for the daemon.
    private let queue = DispatchQueue(label: "io.btcpriced.watch")
    private let stopSignal = Mutex<StopSignal?>(nil)

    /// - Parameter socket: Finds the daemon's.
    init(socket: @escaping @Sendable () -> String) {
        self.socket = socket
    }

    /// - Parameter told: Called on the watch's thread.
    func start(_ told: @escaping @Sendable (News) -> Void) {
        let signal = StopSignal()
        stopSignal.withLock { current in
            current?.set()
            current = signal
        }
        queue.async { self.follow(signal, told) }
    }

    func stop() {
        stopSignal.withLock { $0.take()?.set() }
    }

    private func isCurrent(_ signal: StopSignal) -> Bool { stopSignal.withLock { $0 === signal } }

    private func follow(_ signal: StopSignal, _ told: (News) -> Void) {
        while isCurrent(signal) {
            var isWatching = false
            do throws(ClientError) {
                var connection = try PriceConnection(path: socket(), timeout: Bounds.timeout)
                let currencies = try connection.listCurrencies()
                let slowest = currencies.map(\.interval).max() ?? 0
                try connection.watch(currencies.map(\.currency))
                isWatching = true
                while isCurrent(signal) {
                    let message = try connection.nextState(
                        timeout: max(Bounds.silence, .milliseconds(3 * slowest)), interruption: signal.descriptor)
                    if isCurrent(signal) { told(.state(message)) }
                }
            } catch {
                guard isCurrent(signal) else { return }
                switch error {
                // A signal of the process.
                case .interrupted: continue
                // The ticks are paused, or the daemon hangs: then it does not answer on the next connection either.
                case .timedOut where isWatching: continue
                default: told(.gone)
                }
            }
            signal.wait(Bounds.pause)
        }
    }
}
