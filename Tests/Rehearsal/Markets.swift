import BTCPriceCore
import BTCPriceNetworking

extension Exchange {
    /// The dollar's market. Every exchange has one.
    var dollars: Market { markets[.usd] ?? Market(name, Currency.usd.pair) }
}
