import BTCPriceCore

/// The dollar's markets.
extension Market {
    static let binance = Market("binance", "BTC/USDT")
    static let cryptocompare = Market("cryptocompare", "BTC/USD")
    static let coinbase = Market("coinbase", "BTC/USD")
    static let bitstamp = Market("bitstamp", "BTC/USD")
    static let kraken = [Market("kraken", "BTC/USD"), Market("kraken", Market.pegPair)]
}
