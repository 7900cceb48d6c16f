import BTCPriceAPI
import BTCPriceCore
import Dispatch
import Synchronization
import Varlink

/// Requests what the daemon's watch does not say, every 10 s: the reports of its sources, and its currencies. On a thread of its own, since the
/// calls block.
final class DaemonPoll: Sendable {
    private static let period = Duration.seconds(10)

    private let socket: @Sendable () -> String
    private let told: @Sendable ([SourceReport], [CurrencyMessage]) -> Void
    private let signal = StopSignal()
    private let isStopped = Atomic<Bool>(false)

    /// - Parameters:
    ///   - socket: Finds the daemon's.
    ///   - told: Called on the poll's thread.
    init(
        socket: @escaping @Sendable () -> String, told: @escaping @Sendable ([SourceReport], [CurrencyMessage]) -> Void
    ) {
        self.socket = socket
        self.told = told
    }

    func start() {
        DispatchQueue(label: "io.btcpriced.sources").async {
            while !self.isStopped.load(ordering: .acquiring) {
                do throws(ClientError) {
                    var connection = try PriceConnection(path: self.socket(), timeout: .seconds(2))
                    self.told(try connection.listSources(), try connection.listCurrencies())
                } catch {
                    // The watch says why the daemon can't be reached.
                }
                self.signal.wait(Self.period)
            }
        }
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        signal.set()
    }
}
