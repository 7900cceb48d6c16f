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
        guard Self.isCode(self) else { return nil }
    }

    /// The currency that replaced another one, which is no code of ISO 4217 any more; `nil` for any other text.
    package static func successor(of code: String) -> Currency? { successors[code].flatMap(Currency.init(rawValue:)) }

    /// ISO 4217, list three, of those that ended after bitcoin began.
    private static let successors = [
        "ANG": "XCG", "BGN": "EUR", "BYR": "BYN", "CUC": "CUP", "EEK": "EUR", "HRK": "EUR", "LTL": "EUR", "LVL": "EUR",
        "MRO": "MRU", "SKK": "EUR", "SLL": "SLE", "STD": "STN", "VEF": "VES", "ZMK": "ZMW", "ZWL": "ZWG",
    ]

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

    /// An amount of it, rounded half to even: `$68,901.23`, `CHF 55,020.10`, `¥10,345,678`.
    package func money(_ value: Price) -> String {
        "\(value.isNegative ? "-" : "")\(symbol)\(value.magnitude.grouped(places: places))"
    }

    /// Its pair with bitcoin: `BTC/EUR`.
    package var pair: String { "BTC/\(rawValue)" }

    /// The currency that its price is best derived from: that of the two against which its reference rate moves less. `nil` for the two.
    package var nearest: Currency? { [.usd, .eur].contains(self) ? nil : fixing.nearest }

    /// How far its reference rate per unit of another currency moves in a day, as a share; see ``Fixing/moves``.
    func moves(against other: Currency?) -> Double {
        other == fixing.nearest ? fixing.moves : max(fixing.moves, Fixing.usualMoves)
    }

    /// How its reference rate behaves; see ``Fixing``.
    var fixing: Fixing { traits?.fixing ?? Fixing(.usd) }

    /// How a currency's reference rate behaves.
    struct Fixing: Sendable {
        /// The currency, euro or dollar, against which the rate moves less.
        let nearest: Currency
        /// How far the rate moves from one day to the next, as a share: 19 of 20 moves are smaller. Measured on the reference rates of the
        /// ECB from January 2025 to March 2026; for the dirham and the Hong Kong dollar, as their central banks keep the peg. A rate
        /// that was not measured has more than most of them.
        let moves: Double
        /// The factor by which a price may differ from the reference rate, up or down, without a second market.
        let premium: Double
        /// How far people usually pay more or less than the reference rate at most, as a natural logarithm. A market beyond it is in doubt
        /// as long as no other one confirms it. The usual one is a market's premium of 1 % and a day's move. The others are what was seen
        /// in the years from 2017 to 2026: the rupee has a tax of 2 to 6 %, the won was 20 % above, the peso twice and the naira 60 %.
        let bound: Double

        /// The value of ``moves`` for a rate that was not measured.
        static let usualMoves = 0.015

        init(_ nearest: Currency, moves: Double = usualMoves, premium: Double = 2, bound: Double = 0.025) {
            (self.nearest, self.moves, self.premium, self.bound) = (nearest, moves, premium, bound)
        }
    }

    private struct Traits {
        let name: String
        let symbol: String?
        let places: Int
        let prices: ClosedRange<Price>
        let fixing: Fixing?

        /// - Parameter magnitude: About how many of it a dollar buys, as a power of ten.
        init(
            _ name: String, _ symbol: String? = nil, places: Int = 2, magnitude: Price = 1, fixing: Fixing? = nil
        ) {
            (self.name, self.symbol, self.places, self.fixing) = (name, symbol, places, fixing)
            prices = magnitude...min(100_000_000 * magnitude, pricesOfAny.upperBound)
        }
    }

    private var traits: Traits? { Self.rows.first { $0.0 == self }?.1 }

    /// The currencies whose traits are known, in the order in which they are listed.
    package static let known: [Currency] = rows.map(\.0)

    /// Every currency, in the order of the codes.
    package static let all: [Currency] = "\(codes)".split(separator: " ").map { Currency(letters: String($0)) }

    private static func isCode(_ currency: Currency) -> Bool {
        codes.withUTF8Buffer { text in
            stride(from: 0, to: text.count, by: 4).contains { start in
                text[start..<start + 3].reduce(0) { $0 << 8 | UInt32($1) } == currency.letters
            }
        }
    }

    /// The currencies of ISO 4217, list one of 2026-01-01, without funds, metals and codes for tests.
    private static let codes: StaticString = """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP \
        CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD \
        JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN \
        NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN \
        SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
        """

    private static let rows: [(Currency, Traits)] = [
        ("USD", Traits("US Dollar", "$")),
        ("EUR", Traits("Euro", "€")),
        ("GBP", Traits("British Pound", "£", fixing: Fixing(.eur))),
        ("CHF", Traits("Swiss Franc", fixing: Fixing(.eur))),
        ("CAD", Traits("Canadian Dollar", "CA$")),
        ("AUD", Traits("Australian Dollar", "A$")),
        ("JPY", Traits("Japanese Yen", "¥", places: 0, magnitude: 100)),
        ("AED", Traits("United Arab Emirates Dirham", fixing: Fixing(.usd, moves: 0.001))),
        ("ARS", Traits("Argentine Peso", magnitude: 1000, fixing: Fixing(.usd, premium: 4, bound: 0.8))),
        ("BRL", Traits("Brazilian Real", "R$", fixing: Fixing(.usd, moves: 0.0138))),
        ("CLP", Traits("Chilean Peso", places: 0, magnitude: 100)),
        ("COP", Traits("Colombian Peso", magnitude: 1000)),
        ("CZK", Traits("Czech Koruna", magnitude: 10, fixing: Fixing(.eur, moves: 0.003))),
        ("DKK", Traits("Danish Krone", fixing: Fixing(.eur, moves: 0.0002))),
        ("HKD", Traits("Hong Kong Dollar", "HK$", fixing: Fixing(.usd, moves: 0.0065))),
        ("HUF", Traits("Hungarian Forint", magnitude: 100, fixing: Fixing(.eur, moves: 0.0071))),
        ("IDR", Traits("Indonesian Rupiah", magnitude: 10_000, fixing: Fixing(.usd, moves: 0.0087))),
        ("ILS", Traits("Israeli New Shekel", "₪", fixing: Fixing(.usd, moves: 0.0138))),
        ("INR", Traits("Indian Rupee", "₹", magnitude: 10, fixing: Fixing(.usd, moves: 0.0087, bound: 0.08))),
        (
            "KRW",
            Traits("South Korean Won", "₩", places: 0, magnitude: 1000, fixing: Fixing(.usd, moves: 0.012, bound: 0.2))
        ),
        ("MXN", Traits("Mexican Peso", "MX$", magnitude: 10, fixing: Fixing(.usd, moves: 0.0126))),
        ("MYR", Traits("Malaysian Ringgit", fixing: Fixing(.usd, moves: 0.0087))),
        ("NGN", Traits("Nigerian Naira", magnitude: 1000, fixing: Fixing(.usd, premium: 4, bound: 0.5))),
        ("NOK", Traits("Norwegian Krone", magnitude: 10, fixing: Fixing(.eur, moves: 0.0089))),
        ("NZD", Traits("New Zealand Dollar", "NZ$", fixing: Fixing(.usd, moves: 0.0126))),
        ("PEN", Traits("Peruvian Sol")),
        ("PHP", Traits("Philippine Peso", "₱", magnitude: 10, fixing: Fixing(.usd, moves: 0.0087))),
        ("PLN", Traits("Polish Zloty", fixing: Fixing(.eur, moves: 0.0054))),
        ("RON", Traits("Romanian Leu", fixing: Fixing(.eur, moves: 0.0021))),
        ("SEK", Traits("Swedish Krona", magnitude: 10, fixing: Fixing(.eur, moves: 0.0079))),
        ("SGD", Traits("Singapore Dollar", fixing: Fixing(.usd, moves: 0.0061))),
        ("THB", Traits("Thai Baht", magnitude: 10)),
        ("TRY", Traits("Turkish Lira", magnitude: 10, fixing: Fixing(.usd, bound: 0.05))),
        ("TWD", Traits("New Taiwan Dollar", "NT$", magnitude: 10)),
        ("UAH", Traits("Ukrainian Hryvnia", magnitude: 10, fixing: Fixing(.usd, bound: 0.05))),
        ("VES", Traits("Venezuelan Bolívar", magnitude: 100, fixing: Fixing(.usd, premium: 4, bound: 0.5))),
        ("VND", Traits("Vietnamese Dong", "₫", places: 0, magnitude: 10_000, fixing: Fixing(.usd, bound: 0.05))),
        ("ZAR", Traits("South African Rand", magnitude: 10, fixing: Fixing(.usd, bound: 0.05))),
    ].map { (Currency(letters: $0), $1) }
}
