import BTCPriceCore
import BTCPriceServer
import Synchronization

/// Brings states to the server. Keeper and server need each other: the one to show, the other to fetch.
final class Publication: Sendable {
    private let server = Mutex<PriceServer?>(nil)

    func connect(_ server: PriceServer) {
        self.server.withLock { $0 = server }
    }

    func publish(_ state: PriceState, toWatchers: Bool) {
        server.withLock { $0 }?.publish(state, toWatchers: toWatchers)
    }
}
