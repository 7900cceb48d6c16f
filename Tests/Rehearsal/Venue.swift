import BTCPriceCore
import BTCPriceNetworking
import Synchronization

/// A venue's response to one request.
enum VenueAnswer {
    case price(Double)
    case marked(Double, FeedPosition)
    /// A price from this time, in seconds.
    case madeAt(Double, Double)
    /// A price with the venue's time, computed from the true milliseconds since 1970.
    case dated(Double, @Sendable (Int64) -> Int64)
    case fails(PriceLoadingError)
    case hangs
}

/// The exchange whose price a source reports.
func origin(of source: String) -> String { upstreams[source] ?? source }

private let upstreams = Dictionary(
    uniqueKeysWithValues: Exchange.all.compactMap { exchange in exchange.venue.upstream.map { (exchange.name, $0) } })

/// A virtual exchange that responds by a script.
final class ScriptedVenue: PriceLoader {
    /// - Parameters:
    ///   - seconds: The time.
    ///   - ask: The number of the request, from 0.
    typealias Script = @Sendable (_ seconds: Double, _ ask: Int) -> VenueAnswer

    let market: Market
    private let exchange: Exchange
    private let clock: VirtualClock
    private let latency: Duration
    private let peg: @Sendable (Double) -> Double
    private let script: Script
    private let asks = Atomic(0)

    /// The number of requests sent to it.
    var requests: Int { asks.load(ordering: .relaxed) }

    /// - Parameter peg: The price of one USDT in dollars, for a venue that reports it.
    init(
        _ name: String, _ currency: Currency = .usd, clock: VirtualClock, latency: Duration = .milliseconds(40),
        peg: @escaping @Sendable (Double) -> Double = { _ in 1 }, script: @escaping Script
    ) throws {
        guard let exchange = Exchange.all.first(where: { $0.name == name }), let market = exchange.markets[currency]
        else {
            throw VirtualExchange.Unknown(name: name)
        }
        self.market = market
        self.exchange = exchange
        self.clock = clock
        self.latency = latency
        self.peg = peg
        self.script = script
    }

    var venue: Venue { exchange.venue }
    var companions: [Market] { market == Market("kraken", "BTC/USD") ? [Market("kraken", Market.pegPair)] : [] }

    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let seconds = clock.seconds
        let answer = script(seconds, asks.add(1, ordering: .relaxed).oldValue)
        if case .hangs = answer {
            do { try await clock.sleep(until: clock.now.advanced(by: .seconds(3600))) } catch { throw .cancelled }
            throw .unreachable("reset")
        }
        do { try await clock.sleep(until: clock.now.advanced(by: latency)) } catch { throw .cancelled }
        switch answer {
        case .price(let value):
            return prices(value, ordinaryPosition(seconds), seconds)
        case .marked(let value, let position): return prices(value, position, seconds)
        case .madeAt(let value, let then): return prices(value, ordinaryPosition(then), seconds)
        case .dated(let value, let time):
            let milliseconds = time(VirtualDaemon.wallStart + Int64(seconds * 1000))
            return prices(value, FeedPosition(time: Timestamp(milliseconds: milliseconds)), seconds)
        case .fails(let error): throw error
        case .hangs: throw .cancelled
        }
    }

    /// The current price with the time of its trade, as a stream has it; `nil` if the venue reports no price.
    var traded: LoadedPrice? {
        let seconds = clock.seconds
        let trade: (value: Double, time: Double)
        switch script(seconds, asks.load(ordering: .relaxed)) {
        case .price(let value), .marked(let value, _), .dated(let value, _): trade = (value, seconds)
        case .madeAt(let value, let then): trade = (value, then)
        case .fails, .hangs: return nil
        }
        let time = Timestamp(milliseconds: VirtualDaemon.wallStart + Int64(trade.time * 1000))
        return LoadedPrice(market, .cents(trade.value), position: FeedPosition(time: time))
    }

    /// The current price; `nil` if the venue reports none.
    var present: Price? { traded?.value }

    private func prices(_ value: Double, _ position: FeedPosition, _ seconds: Double) -> [LoadedPrice] {
        [LoadedPrice(market, .cents(value), position: position)]
            + companions.map { LoadedPrice($0, Price(Int64((peg(seconds) * 10_000).rounded()), scale: 4)) }
    }

    private func ordinaryPosition(_ seconds: Double) -> FeedPosition {
        let milliseconds = VirtualDaemon.wallStart + Int64(seconds * 1000)
        return FeedPosition(
            time: exchange.hasTime ? Timestamp(milliseconds: milliseconds) : nil,
            sequence: exchange.hasSequence ? milliseconds : nil)
    }
}

extension Price {
    /// A price rounded to the cent; it may be negative. A value beyond the range of integers is not rounded.
    static func cents(_ value: Double) -> Price {
        abs(value) < 1e15 ? Price(Int64((value * 100).rounded()), scale: 2) : Price("\(value)") ?? 0
    }

    /// The value for comparisons.
    var approximate: Double { double }
}

extension VirtualClock {
    var seconds: Double { Double(offset.wholeMilliseconds) / 1000 }
}
