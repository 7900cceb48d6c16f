import BTCPriceCore
import BTCPriceSocket

/// Reads the states of a peer, and determines which of them are prices and when they were observed. A pure value.
struct PeerReading: Sendable {
    /// The longest name of a source that is accepted from a peer, bytes.
    private static let longestName = 32

    /// A peer whose boot clock differs from this machine's by at most this may be on this machine, milliseconds.
    private static let sameMachine: Int64 = 5000

    let ownInstance: String
    /// The newest price, and what identifies it.
    private var last: (instance: String, quote: PriceQuote, price: LoadedPrice)?
    private var clock = RemoteClock()

    init(ownInstance: String) {
        self.ownInstance = ownInstance
    }

    /// - Parameters:
    ///   - market: The market that the price is assigned to.
    ///   - interval: The interval of the peer's ticks.
    ///   - now: When the message arrived.
    /// - Throws: The reason why the state is not a price.
    mutating func price(
        in message: StateMessage, of market: Market, every interval: Duration, at now: ObservationTime
    ) throws(PriceLoadingError) -> LoadedPrice {
        let (quote, origin) = try checked(message)
        // A tick without a newer price repeats the last one.
        if let last, last.instance == message.instance, last.quote == quote,
            last.price.push?.origin == origin
        {
            return last.price
        }
        let plusMinus = origin.confirmation == .unconfirmed ? origin.uncertainty?.plusMinus ?? .zero : .zero
        let share = max(0, plusMinus.double / quote.value.double)
        var price = LoadedPrice(market, quote.value, halfSpread: min(share, Quotes.widestSpread.double / 2))
        let dated = clock.date(
            message.state.observedBoottime, quote.timestamp, of: message.instance, arrivedAt: now)
        price.observed = dated.observed
        // The clock of a peer on this machine would always agree.
        if !dated.isEstimate, message.state.observedBoottime.map({ abs(now.boottime - $0) > Self.sameMachine }) ?? false
        {
            price.venueClock = quote.timestamp
        }
        price.push = .init(.peer, interval: interval, origin: origin)
        last = (message.instance, quote, price)
        return price
    }

    private func checked(_ message: StateMessage) throws(PriceLoadingError) -> (PriceQuote, PriceOrigin) {
        // A follower in a fleet writes the publisher's name and a slash before its instance.
        guard message.instance != ownInstance, !message.instance.hasSuffix("/\(ownInstance)") else {
            throw .refused("it is this daemon itself")
        }
        let state = message.state
        guard let quote = state.quote, state.freshness == .fresh else {
            throw .unavailable("it has no current price: \(oneLine(state.failure ?? "none yet"))")
        }
        guard quote.via == nil else { throw .unavailable("its own price comes from another peer") }
        guard state.derivation == nil else { throw .unavailable("its own price is derived from another currency's") }
        guard quote.currency == "USD", ["BTC/USD", "BTC/USDT"].contains(quote.market) else {
            throw .invalidData("the price of \(oneLine("\(quote.market) in \(quote.currency)"))")
        }
        let isName = quote.source.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                || $0 == UInt8(ascii: "-")
        }
        guard isName, (1...Self.longestName).contains(quote.source.utf8.count) else {
            throw .invalidData("a price from a source with an invalid name: \(oneLine(quote.source))")
        }
        // A price that the peer has converted is in dollars.
        let pair = state.price?.conversion == nil ? quote.market : "BTC/USD"
        // One that is larger than the price says nothing.
        let uncertainty = state.standing.uncertainty.flatMap { $0.plusMinus <= quote.value ? $0 : nil }
        let origin = PriceOrigin(
            source: quote.source, pair: pair, instance: message.instance, confirmation: state.confirmation,
            uncertainty: uncertainty)
        return (quote, origin)
    }
}
