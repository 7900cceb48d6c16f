import BTCPriceCore
import BTCPriceSocket
import Dispatch

/// Requests the reports of the daemon's sources every 10 s, which a watch does not include. On its own thread, since the calls block.
final class SourcePoll: Sendable {
    private let socket: @Sendable () -> String
    private let told: @Sendable ([SourceReport]) -> Void
    private let mustStop = DispatchSemaphore(value: 0)

    /// - Parameter told: Called with the reports, on the poll's thread.
    init(socket: @escaping @Sendable () -> String, told: @escaping @Sendable ([SourceReport]) -> Void) {
        self.socket = socket
        self.told = told
    }

    func start() {
        DispatchQueue(label: "io.btcpriced.sources").async {
            repeat {
                do throws(ClientError) {
                    var connection = try PriceConnection(path: self.socket(), timeout: .seconds(2))
                    self.told(try connection.listSources())
                } catch {
                    // The watch reports why the daemon can't be reached.
                }
            } while self.mustStop.wait(timeout: .now() + .seconds(10)) == .timedOut
        }
    }

    func stop() { mustStop.signal() }
}
