/// A currency that a bitcoin's price can be kept in, by its ISO 4217 code.
///
/// Each code of ISO 4217 is accepted. ``rows`` has the symbol and the digits of those whose prices are often wanted.
package struct Currency: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The letters of the code, one in a byte.
    private let letters: UInt32

    /// - Parameter rawValue: A code of ISO 4217: `EUR`.
    /// - Returns: `nil` for any other text.
    package init?(rawValue: String) {
        guard rawValue.utf8.count == 3 else { return nil }
        self.init(letters: rawValue)
        guard Self.codes.contains(self) else { return nil }
    }

    private init(letters: String) {
        self.letters = letters.utf8.reduce(0) { $0 << 8 | UInt32($1) }
    }

    package static let usd = Currency(letters: "USD")
    package static let eur = Currency(letters: "EUR")
    package static let gbp = Currency(letters: "GBP")
    package static let chf = Currency(letters: "CHF")
    package static let cad = Currency(letters: "CAD")
    package static let aud = Currency(letters: "AUD")
    package static let jpy = Currency(letters: "JPY")

    package var rawValue: String {
        String(decoding: [UInt8(letters >> 16), UInt8(letters >> 8 & 0xFF), UInt8(letters & 0xFF)], as: UTF8.self)
    }

    package var description: String { rawValue }

    /// The text before a number, as the Unicode CLDR defines it for English. A code is followed by a space.
    package var symbol: String { traits?.symbol ?? "\(rawValue) " }

    /// The prices that are accepted. Bitcoin passed 1 USD in February 2011; a lower price is another pair's. The highest one is more
    /// than a thousand times the price at the time of writing. The absurd prices that were seen in the wild (850,867,136,053 USD on
    /// 2021-12-14) are higher.
    package var prices: ClosedRange<Price> { traits?.prices ?? Self.pricesOfAny }

    /// The prices that are accepted if the currency is not known. The history holds no higher ones.
    package static let pricesOfAny: ClosedRange<Price> = 1...90_000_000_000

    /// The decimal places that people write (ISO 4217, minor unit).
    package var places: Int { traits?.places ?? 2 }

    /// The value of its smallest coin.
    package var coin: Price { Price(1, scale: places) }

    /// Its name (Unicode CLDR, English); the code if it is not known.
    package var englishName: String { traits?.name ?? rawValue }

    /// Its pair with bitcoin: `BTC/EUR`.
    package var pair: String { "BTC/\(rawValue)" }

    private struct Traits {
        let name: String
        let symbol: String?
        let places: Int
        let prices: ClosedRange<Price>

        /// - Parameter magnitude: About how many of it a dollar buys, as a power of ten.
        init(_ name: String, _ symbol: String? = nil, places: Int = 2, magnitude: Price = 1) {
            (self.name, self.symbol, self.places) = (name, symbol, places)
            prices = magnitude...min(100_000_000 * magnitude, pricesOfAny.upperBound)
        }
    }

    private var traits: Traits? { Self.traits[self] }

    /// The currencies whose traits are known, in the order in which they are listed.
    package static let known: [Currency] = rows.map(\.0)

    private static let traits = Dictionary(uniqueKeysWithValues: rows)

    /// The currencies of ISO 4217, list one of 2026-01-01, without funds, metals and codes for tests.
    private static let codes = Set(
        """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP \
        CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD \
        JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN \
        NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN \
        SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
        """.split(separator: " ").map { Currency(letters: String($0)) })

    private static let rows: [(Currency, Traits)] = [
        ("USD", Traits("US Dollar", "$")),
        ("EUR", Traits("Euro", "€")),
        ("GBP", Traits("British Pound", "£")),
        ("CHF", Traits("Swiss Franc")),
        ("CAD", Traits("Canadian Dollar", "CA$")),
        ("AUD", Traits("Australian Dollar", "A$")),
        ("JPY", Traits("Japanese Yen", "¥", places: 0, magnitude: 100)),
        ("AED", Traits("United Arab Emirates Dirham")),
        ("ARS", Traits("Argentine Peso", magnitude: 1000)),
        ("BRL", Traits("Brazilian Real", "R$")),
        ("CLP", Traits("Chilean Peso", places: 0, magnitude: 100)),
        ("COP", Traits("Colombian Peso", magnitude: 1000)),
        ("CZK", Traits("Czech Koruna", magnitude: 10)),
        ("DKK", Traits("Danish Krone")),
        ("HKD", Traits("Hong Kong Dollar", "HK$")),
        ("HUF", Traits("Hungarian Forint", magnitude: 100)),
        ("IDR", Traits("Indonesian Rupiah", magnitude: 10_000)),
        ("ILS", Traits("Israeli New Shekel", "₪")),
        ("INR", Traits("Indian Rupee", "₹", magnitude: 10)),
        ("KRW", Traits("South Korean Won", "₩", places: 0, magnitude: 1000)),
        ("MXN", Traits("Mexican Peso", "MX$", magnitude: 10)),
        ("MYR", Traits("Malaysian Ringgit")),
        ("NGN", Traits("Nigerian Naira", magnitude: 1000)),
        ("NOK", Traits("Norwegian Krone", magnitude: 10)),
        ("NZD", Traits("New Zealand Dollar", "NZ$")),
        ("PEN", Traits("Peruvian Sol")),
        ("PHP", Traits("Philippine Peso", "₱", magnitude: 10)),
        ("PLN", Traits("Polish Zloty")),
        ("RON", Traits("Romanian Leu")),
        ("SEK", Traits("Swedish Krona", magnitude: 10)),
        ("SGD", Traits("Singapore Dollar")),
        ("THB", Traits("Thai Baht", magnitude: 10)),
        ("TRY", Traits("Turkish Lira", magnitude: 10)),
        ("TWD", Traits("New Taiwan Dollar", "NT$", magnitude: 10)),
        ("UAH", Traits("Ukrainian Hryvnia", magnitude: 10)),
        ("VND", Traits("Vietnamese Dong", "₫", places: 0, magnitude: 10_000)),
        ("ZAR", Traits("South African Rand", magnitude: 10)),
    ].map { (Currency(letters: $0), $1) }
}
