import BTCPriceCore

@testable import BTCPriceNetworking

/// The dollar's markets.
extension Market {
    static let binance = Market("binance", "BTC/USDT")
    static let cryptocompare = Market("cryptocompare", "BTC/USD")
    static let coinbase = Market("coinbase", "BTC/USD")
    static let bitstamp = Market("bitstamp", "BTC/USD")
    static let kraken = [Market("kraken", "BTC/USD"), Market("kraken", Market.pegPair)]
}

/// The prices that a built-in exchange's description finds in a response.
func prices(_ response: HTTPResponse, _ markets: Market...) throws(PriceLoadingError) -> [LoadedPrice] {
    try prices(response, markets)
}

func prices(_ response: HTTPResponse, _ markets: [Market]) throws(PriceLoadingError) -> [LoadedPrice] {
    guard let exchange = Exchange.all.first(where: { $0.name == markets[0].venue }) else { fatalError("\(markets)") }
    let described = markets.compactMap { market in exchange.description.markets.first { $0.market == market } }
    return try TickerReader(exchange.description, described).prices(response)
}
