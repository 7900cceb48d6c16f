/// The movement of the price in a span of time, from the ticks that had a valid price.
package struct Candle: Sendable, Hashable {
    /// The length of a candle.
    package enum Step: String, Sendable, Hashable, CaseIterable, Comparable {
        case second
        case minute
        case hour
        /// A day in UTC.
        case day

        package var seconds: Int64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            case .day: 86_400
            }
        }

        package static func < (left: Step, right: Step) -> Bool { left.seconds < right.seconds }

        /// The start of the candle that contains a moment, in Unix seconds.
        package func start(of second: Int64) -> Int64 {
            let rest = second % seconds
            return second - (rest < 0 ? rest + seconds : rest)
        }
    }

    /// More ticks than a day can have at the shortest interval.
    package static let mostTicks: Int64 = 1_000_000

    /// The origin of a candle that this daemon has made from its own prices.
    package static let own = "own"
    /// The origin of a candle that was made from candles with different origins.
    package static let mixed = "mixed"

    /// Unix seconds, a multiple of the step.
    package var start: Int64
    /// The first price.
    package var open: Price
    package var high: Price
    package var low: Price
    /// The last price.
    package var close: Price
    /// The number of ticks in it; 0 for an exchange's candle.
    package var ticks: Int64
    /// The number of those ticks that had a valid price.
    package var fresh: Int64
    /// ``own``, ``mixed``, or the exchange whose candle it is.
    package var origin: String

    package init(
        start: Int64, open: Price, high: Price, low: Price, close: Price, ticks: Int64 = 0, fresh: Int64 = 0,
        origin: String = Candle.own
    ) {
        self.start = start
        self.open = open
        self.high = high
        self.low = low
        self.close = close
        self.ticks = ticks
        self.fresh = fresh
        self.origin = origin
    }

    /// Makes a candle from external data: from an exchange, a database or a message.
    /// - Parameter currency: The currency of its prices; `nil` if it is not known, to accept the prices of any currency.
    /// - Returns: `nil` if it is not a valid candle: a price is outside of ``Currency/prices``, the four are out of order, a count is
    ///   negative or above ``mostTicks``, there are more valid ticks than ticks, or the start is outside of
    ///   ``Timestamp/possibleMilliseconds``.
    package init?(
        checkedStart start: Int64, open: Price, high: Price, low: Price, close: Price, ticks: Int64 = 0,
        fresh: Int64 = 0, origin: String, in currency: Currency?
    ) {
        let prices = currency?.prices ?? Currency.pricesOfAny
        guard prices.contains(low), prices.contains(high), low <= min(open, close), high >= max(open, close),
            fresh >= 0, ticks >= fresh, ticks <= Self.mostTicks, start >= 0,
            start <= Timestamp.possibleMilliseconds.upperBound / 1000
        else { return nil }
        self.init(
            start: start, open: open, high: high, low: low, close: close, ticks: ticks, fresh: fresh, origin: origin)
    }

    /// A candle of one price.
    package init(start: Int64, _ price: Price) {
        self.init(start: start, open: price, high: price, low: price, close: price, ticks: 1, fresh: 1)
    }

    /// Adds a later price.
    mutating func add(_ price: Price) {
        high = max(high, price)
        low = min(low, price)
        close = price
    }

    /// Adds a later candle.
    package mutating func add(_ later: Candle) {
        high = max(high, later.high)
        low = min(low, later.low)
        close = later.close
        ticks += later.ticks
        fresh += later.fresh
        if origin != later.origin { origin = Self.mixed }
    }

    /// Merges candles into candles of a longer step.
    /// - Parameter candles: From the oldest to the newest.
    package static func merged(_ candles: some Sequence<Candle>, to step: Step) -> [Candle] {
        candles.reduce(into: []) { merged, candle in
            var candle = candle
            candle.start = step.start(of: candle.start)
            if merged.last?.start == candle.start {
                merged[merged.count - 1].add(candle)
            } else {
                merged.append(candle)
            }
        }
    }
}
