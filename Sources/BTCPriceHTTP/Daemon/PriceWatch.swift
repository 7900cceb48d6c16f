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

    private let socket: String
    private let stopSignal = Mutex<StopSignal?>(nil)

    init(socket: String) {
        self.socket = socket
    }

    /// - Parameter told: Called on the watch's thread.
    func start(_ told: @escaping @Sendable (News) -> Void) {
        let signal = StopSignal()
        stopSignal.withLock { current in
            current?.set()
            current = signal
        }
        DispatchQueue(label: "io.btcpriced.watch").async { self.follow(signal, told) }
    }

    func stop() {
        stopSignal.withLock { $0.take()?.set() }
    }

    private func isCurrent(_ signal: StopSignal) -> Bool { stopSignal.withLock { $0 === signal } }

    private func follow(_ signal: StopSignal, _ told: (News) -> Void) {
        while isCurrent(signal) {
            do throws(ClientError) {
                var connection = try PriceConnection(path: socket, timeout: .seconds(2))
                let currencies = try connection.listCurrencies()
                let slowest = currencies.map(\.interval).max() ?? 0
                try connection.watch(currencies.map(\.currency))
                while isCurrent(signal) {
                    let message = try connection.nextState(
                        timeout: max(.seconds(60), .milliseconds(3 * slowest)), interruption: signal.descriptor)
                    if isCurrent(signal) { told(.state(message)) }
                }
            } catch {
                guard isCurrent(signal) else { return }
                // A signal of the process interrupts, too; so does a pause of the ticks, which may be long.
                switch error {
                case .interrupted, .timedOut: continue
                default: told(.gone)
                }
            }
            signal.wait(.seconds(1))
        }
    }
}
