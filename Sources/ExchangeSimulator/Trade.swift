import Glibc

/// A trade on one venue. Its markets in other currencies have it at the same time, at their rates.
struct Trade: Sendable {
    /// Counts the venue's trades from 1.
    var number: Int
    /// The price in dollars as decimal text.
    var dollars: String
    /// The time of the trade since 1970, in nanoseconds, rounded down to a microsecond.
    var nanoseconds: Int64

    /// The identifier in Coinbase's messages.
    var coinbaseID: Int { 1_040_000_000 + number }

    /// The trades of one big order: this one, and cheaper ones of the same time.
    func burst(of count: Int) -> [Trade] {
        (0..<count).map { place in
            Trade(
                number: number + place,
                dollars: place == 0 ? dollars : PriceSeries.price(dollars, plus: Int64(-place)),
                nanoseconds: nanoseconds)
        }
    }

    /// The current time since 1970, in nanoseconds, rounded down to a microsecond.
    static func now() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) / 1000 * 1000
    }
}
