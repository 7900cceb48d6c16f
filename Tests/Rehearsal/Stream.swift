import BTCPriceCore
import Synchronization

/// The stream of a virtual venue. Its current price is always the one that a request would return, with the same lies.
final class VirtualStream: PriceStream {
    private let venue: ScriptedVenue
    private let now: TimeSource
    private let told = Mutex<(@Sendable (StreamNews) -> Void)?>(nil)

    init(_ venue: ScriptedVenue, now: @escaping TimeSource) {
        self.venue = venue
        self.now = now
    }

    var current: LoadedPrice? {
        guard told.withLock({ $0 != nil }), let value = venue.present else { return nil }
        var price = LoadedPrice(venue.market, value)
        price.observed = now()
        price.push = .init(.stream, interval: .milliseconds(1750))
        return price
    }

    func compare(_ polled: LoadedPrice, requested boottime: Int64) {}

    func start(_ told: @escaping @Sendable (StreamNews) -> Void) { self.told.withLock { $0 = told } }

    func read(every interval: Duration, before tick: Duration?) {}

    func stop() { told.withLock { $0 = nil } }

    func tell() { told.withLock(\.self)?(.price) }
}
