import Glibc

/// A trade on one venue. Its markets in other currencies have it at the same time, at their rates.
struct Trade: Sendable {
    /// Counts the venue's trades from 1.
    var number: Int
    /// The price in dollars as decimal text.
    var dollars: String
    /// When it was made, since 1970, in whole microseconds.
    var nanoseconds: Int64

    /// The identifier in Coinbase's messages.
    var coinbaseID: Int { 1_040_000_000 + number }

    /// The trade as one that is older, as much as it is.
    /// - Parameter rate: The number of trades in a second.
    func aged(byMilliseconds milliseconds: Int64, rate: Double) -> Trade {
        Trade(
            number: number - max(1, Int(Double(milliseconds) / 1000 * rate)), dollars: dollars,
            nanoseconds: nanoseconds - milliseconds * 1_000_000)
    }

    /// The trades of one big order: this one, and cheaper ones of the same time.
    func burst(of count: Int) -> [Trade] {
        (0..<count).map { place in
            Trade(
                number: number + place,
                dollars: place == 0 ? dollars : PriceSeries.price(dollars, plus: Int64(-place)),
                nanoseconds: nanoseconds)
        }
    }

    /// This moment since 1970, in whole microseconds.
    static func now() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) / 1000 * 1000
    }
}
