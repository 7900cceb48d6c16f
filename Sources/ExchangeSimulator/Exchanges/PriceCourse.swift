import Glibc

/// The past of the simulated price, minute by minute: since the start the prices of the simulator, and before it a course that ends at
/// the first price. The same seed and the same start give the same course.
struct PriceCourse {
    /// Prices in cents.
    struct Candle {
        let start: Int64
        let open: Int64
        var high: Int64
        var low: Int64
        var close: Int64

        mutating func add(_ later: Candle) {
            high = max(high, later.high)
            low = min(low, later.low)
            close = later.close
        }
    }

    private static let seed: UInt64 = 7
    /// The lengths of the swings in minutes, and their amplitudes as parts of the price.
    private static let swings: [(minutes: Double, part: Double)] = [
        (43_200, 0.15), (10_080, 0.06), (1440, 0.02), (120, 0.006), (15, 0.002), (3, 0.0005),
    ]

    /// The minutes since the first price.
    private var given: [Candle] = []

    var hasBegun: Bool { !given.isEmpty }

    /// - Parameters:
    ///   - price: Decimal text.
    ///   - second: Unix seconds.
    mutating func add(_ price: String, at second: Int64) {
        let cents = Int64(((Double(price) ?? 0) * 100).rounded())
        let start = second - second % 60
        let candle = Candle(start: start, open: cents, high: cents, low: cents, close: cents)
        if let last = given.indices.last, given[last].start >= start {
            given[last].add(candle)
        } else {
            given.append(candle)
        }
    }

    /// Candles, from the oldest to the newest. The last one may not be complete.
    /// - Parameters:
    ///   - range: The range of their starts, Unix seconds.
    ///   - seconds: The length of each candle.
    ///   - now: Unix seconds.
    func candles(in range: Range<Int64>, each seconds: Int64, now: Int64) -> [Candle] {
        guard let first = given.first else { return [] }
        let end = min(range.upperBound, now + 1)
        var candles: [Candle] = []
        var known = given[...]
        // The past is sampled, so that years do not take long: a candle of a day every hour, a candle of an hour every two minutes.
        let sample = min(3600, max(60, seconds / 24 / 60 * 60))
        var minute = range.lowerBound - range.lowerBound % seconds
        while minute < end {
            let candle: Candle
            if minute < first.start {
                candle = past(minute, each: sample, endingAt: first)
                minute += sample
            } else {
                known = known.drop { $0.start < minute }
                // A minute without a price has no candle.
                guard let found = known.first, found.start < end else { break }
                candle = found
                minute = found.start + 60
            }
            let start = candle.start - candle.start % seconds
            if candles.last?.start == start {
                candles[candles.count - 1].add(candle)
            } else {
                candles.append(
                    Candle(start: start, open: candle.open, high: candle.high, low: candle.low, close: candle.close))
            }
        }
        return candles.filter { range.contains($0.start) }
    }

    /// A minute before the first price.
    private func past(_ minute: Int64, each sample: Int64, endingAt first: Candle) -> Candle {
        let level = { (minute: Int64) in Self.course(minute / 60) / Self.course(first.start / 60) * Double(first.open) }
        let (open, close) = (Int64(level(minute).rounded()), Int64(level(min(minute + sample, first.start)).rounded()))
        // The amplitude of the short swings between two samples, so that a day's range includes each of its minutes.
        let unseen = sample > 60 ? Self.swings.filter { $0.minutes <= Double(sample / 30) }.map(\.part).reduce(0, +) : 0
        let spread = Int64((Self.noise(minute / 60, 99) * 0.0003 + unseen) * Double(open))
        return Candle(
            start: minute, open: open, high: max(open, close) + spread, low: min(open, close) - spread, close: close)
    }

    /// A level around 1.
    private static func course(_ minute: Int64) -> Double {
        exp(
            swings.enumerated().reduce(0) { sum, swing in
                let index = Double(minute) / swing.element.minutes
                let whole = Int64(index.rounded(.down))
                let part = (1 - cos((index - Double(whole)) * .pi)) / 2
                let (from, to) = (noise(whole, swing.offset), noise(whole + 1, swing.offset))
                return sum + swing.element.part * (from + (to - from) * part - 0.5)
            })
    }

    /// A number from 0 to 1.
    private static func noise(_ index: Int64, _ stream: Int) -> Double {
        var generator = SplitMix64(seed: seed &+ UInt64(bitPattern: index) &* 31 &+ UInt64(stream) << 56)
        return Double(generator.next() >> 11) / Double(1 << 53)
    }
}

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
        (0..<count).map { index in
            Trade(
                number: number + index,
                dollars: index == 0 ? dollars : PriceSeries.price(dollars, plus: Int64(-index)),
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
