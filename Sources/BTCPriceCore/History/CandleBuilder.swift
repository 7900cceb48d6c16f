/// Makes one-minute candles from the published states of one currency. A pure value.
struct CandleBuilder: Sendable {
    /// The candle of the current minute; `nil` before its first valid price.
    private(set) var current: Candle?
    /// The minute of the last state, Unix seconds.
    private(set) var minute: Int64?
    /// The ticks of this minute before its first valid price.
    private var failedTicks: Int64 = 0

    /// Adds a state. An earlier minute must have been ended with ``close()``.
    /// - Parameters:
    ///   - price: The price; `nil` if it is not fresh.
    ///   - isTick: Whether a tick has made the state. Any other state extends the candle and is not counted.
    ///   - second: The time of the state, in Unix seconds.
    mutating func add(_ price: Price?, isTick: Bool, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        minute = start
        if let price {
            if current == nil {
                current = Candle(start: start, open: price, high: price, low: price, close: price, ticks: failedTicks)
                failedTicks = 0
            }
            current?.add(price)
            if isTick { current?.fresh += 1 }
        }
        if isTick {
            if current == nil { failedTicks += 1 } else { current?.ticks += 1 }
        }
    }

    /// Ends the current minute.
    /// - Returns: Its candle; `nil` if it had no valid price.
    mutating func close() -> Candle? {
        defer { (current, minute, failedTicks) = (nil, nil, 0) }
        return current
    }
}
