/// A pair of bitcoin with a currency, and the currency's rate to the dollar.
enum Pair: String, CaseIterable {
    case usd = "BTC/USD"
    /// Binance's dollar.
    case usdt = "BTC/USDT"
    case eur = "BTC/EUR"
    case gbp = "BTC/GBP"
    case chf = "BTC/CHF"
    case cad = "BTC/CAD"
    case aud = "BTC/AUD"
    case jpy = "BTC/JPY"

    /// The price of a dollar in the currency. Fixed: the simulated exchange rates do not move by themselves.
    var rate: Double {
        switch self {
        case .usd, .usdt: 1
        case .eur: 0.86
        case .gbp: 0.75
        case .chf: 0.8
        case .cad: 1.38
        case .aud: 1.53
        case .jpy: 150
        }
    }

    /// `EUR`
    var quote: String { String(rawValue.dropFirst(4)) }

    /// The pairs of the real exchange that the daemon knows.
    static func known(to venue: VenueName) -> [Pair] {
        switch venue {
        case .binance: [.usdt, .eur, .jpy]
        case .cryptocompare: [.usd]
        case .coinbase, .bitstamp: [.usd, .eur, .gbp]
        case .kraken: [.usd, .eur, .gbp, .chf, .cad, .aud, .jpy]
        }
    }

    private var krakenName: String { "XBT\(quote)" }

    /// The names in requests to Kraken.
    var krakenNames: Set<String> { [krakenName, krakenKey] }

    /// The name in Kraken's responses. In old pairs, each half has a letter before it.
    var krakenKey: String {
        switch self {
        case .chf, .aud, .usdt: krakenName
        case .usd, .eur, .gbp, .cad, .jpy: "XXBTZ\(quote)"
        }
    }
}
