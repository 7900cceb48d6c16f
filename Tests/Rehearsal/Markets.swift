import BTCPriceCore
import BTCPriceNetworking

extension Exchange {
    /// The dollar's market. Every exchange has one.
    var dollars: Market { markets[.usd] ?? Market(name, Currency.usd.pair) }

    /// Whether its responses have the time of the price.
    var hasTime: Bool { description.timeMeaning == .trade || description.timeMeaning == .book }

    /// Whether its responses have the number of the trade.
    var hasSequence: Bool { description.sequence != nil }
}
