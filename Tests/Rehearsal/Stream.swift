import BTCPriceCore
import Synchronization

/// The stream of a virtual venue. It brings the price that a request would return, with the same lies.
final class VirtualStream: PriceStream {
    private let venue: ScriptedVenue
    private let told = Mutex<(@Sendable (StreamNews) -> Void)?>(nil)

    init(_ venue: ScriptedVenue) { self.venue = venue }

    func start(every interval: Duration, _ told: @escaping @Sendable (StreamNews) -> Void) {
        self.told.withLock { $0 = told }
    }

    func stop() { told.withLock { $0 = nil } }

    /// Brings the current price.
    func tell() {
        guard let told = told.withLock(\.self), var price = venue.traded else { return }
        price.push = .init(.stream)
        told(.price(price))
    }
}
