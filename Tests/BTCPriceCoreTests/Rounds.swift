@testable import BTCPriceCore

/// Rounds on a tracker, with markets whose prices a test sets. No clock, no tasks.
final class Rounds {
    static let four: [Market] = [.binance, .coinbase, .bitstamp, .kraken]

    var tracker: PriceTracker
    let markets: [Market]
    /// The price of each market. A market without a price does not respond.
    var prices: [Market: String] = [:]
    var positions: [Market: FeedPosition] = [:]
    /// Half of the spread of each market that has quotes.
    var halfSpreads: [Market: Double] = [:]
    /// The price of one USDT in dollars, as Kraken reports it.
    var peg: String?
    /// The minimum time between two requests of a market.
    var paces: [Market: Duration] = [:]
    /// The independent venues.
    var venues: [Market: Venue] = [:]
    /// The peers: when each pushed its price, and the source of the price.
    var pushes: [Market: (at: Double, origin: PriceOrigin)] = [:]
    /// Whether the peers show their prices as unconfirmed.
    /// What the peers say of their own prices.
    var confirmation: Confirmation?
    var uncertainty: Uncertainty?
    /// The price in another currency.
    var other: OtherCurrency?
    /// What it and a reference rate imply.
    var expected: ExpectedPrice?
    /// The markets that were requested in the last round, in their order.
    private(set) var requested: [Market] = []
    /// The markets that their limits do not allow to be requested.
    var isUnreachable: Set<Market> = []
    private(set) var lastActions = PriceTracker.Actions()

    init(
        _ markets: [Market] = four, rules: SelectionRules = SelectionRules(), currency: Currency = .usd,
        belief: Belief = .ofToday
    ) {
        self.markets = markets
        tracker = PriceTracker(currency, interval: .seconds(1), rules: rules, belief: belief)
    }

    /// A copy, for tests that continue in two ways.
    func copy() -> Rounds {
        let copy = Rounds(markets, rules: tracker.rules, belief: tracker.belief)
        copy.prices = prices
        return copy
    }

    var belief: Belief { tracker.belief }

    static func time(_ seconds: Double) -> ObservationTime {
        World.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    /// One round of requests, some seconds after the start.
    func tick(at seconds: Double) -> Decision? {
        requested = []
        let now = Self.time(seconds)
        var round = tracker.round(
            at: now.boottime, markets: markets, beside: other)
        round.isTick = true
        round.expected = expected
        while true {
            switch tracker.select(round) {
            case .decided(let decision, let belief):
                lastActions = tracker.decided(decision, belief, in: round, isTick: true)
                return decision
            case .needs(let need):
                let result = poll(need, at: now)
                if result.answered.isEmpty, need.purpose == .price {
                    lastActions = tracker.failed(
                        FetchFailure(failures: result.failures), isTick: true, at: now.boottime)
                    return nil
                }
                tracker.add(result, to: &round)
            }
        }
    }

    private func poll(_ need: Need, at now: ObservationTime) -> PollResult {
        var result = PollResult()
        result.skipped = need.markets.filter(isUnreachable.contains).map { Skipped(source: $0.venue, reason: .limit) }
        for market in need.markets where !isUnreachable.contains(market) {
            requested.append(market)
            if let error = give(market, at: now) {
                result.failures.append(SourceFailure(source: market.venue, error: error))
            } else {
                result.answered.append(market)
                if need.quorum == nil { break }
            }
        }
        return result
    }

    /// Records one market's response in the book.
    func give(_ market: Market, at now: ObservationTime) -> PriceLoadingError? {
        guard let value = prices[market] else { return .unavailable("HTTP 503") }
        var loaded = [
            LoadedPrice(
                market, price(value), position: positions[market] ?? FeedPosition(),
                halfSpread: halfSpreads[market] ?? 0)
        ]
        if let push = pushes[market] {
            loaded[0].observed = Self.time(push.at)
            var origin = push.origin
            (origin.confirmation, origin.uncertainty) = (confirmation, uncertainty)
            loaded[0].push = .init(.peer, interval: .seconds(1), origin: origin)
        }
        if market == .kraken, let peg { loaded.append(LoadedPrice(Market("kraken", Market.pegPair), price(peg))) }
        do throws(PriceLoadingError) {
            try tracker.record(loaded, of: market, from: venues[market], pace: paces[market] ?? .zero, at: now)
            return nil
        } catch {
            return error
        }
    }

    /// Requests a market as the observer does.
    @discardableResult
    func observe(_ market: Market, at seconds: Double) -> PriceTracker.Actions {
        if let error = give(market, at: Self.time(seconds)) {
            let failure = FetchFailure(failures: [SourceFailure(source: market.venue, error: error)])
            return tracker.observed(.failure(failure))
        }
        return tracker.observed(.success(market))
    }
}

extension Decision {
    var confirmation: Confirmation { price?.confirmation ?? .single }
    var uncertainty: Uncertainty? { standing.uncertainty }
    var consensus: Consensus? { standing.consensus }
    var conversion: Conversion? { price?.conversion }

    /// `68901.23 binance single`, `withheld binance`, `rejected binance`
    var text: String {
        if let quote { return "\(quote.value) \(quote.source) \(confirmation)" }
        let names = rejected.map(\.source).joined(separator: " ")
        return rejected.isEmpty ? "withheld \(withheld?.source ?? "")" : "rejected \(names)"
    }
}

extension PriceTracker {
    func round(
        at boottime: BootTime, markets: [Market], beside other: OtherCurrency? = nil
    ) -> Round {
        Round(began: boottime, markets: markets, freshFor: freshFor, other: other)
    }
}

/// The price of a market that trades: a new one each second.
func alive(_ whole: Int, _ second: Double) -> String { "\(whole).\(Int(second) % 89 + 10)" }
