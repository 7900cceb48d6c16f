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
    ///   - isTick: Whether a tick has made the state. Any other state extends the candle and is not counted. It is ignored if it
    ///     is in doubt, or if the candle is.
    ///   - second: The time of the state, in Unix seconds.
    mutating func add(_ price: Price?, isInDoubt: Bool, isTick: Bool, at second: Int64) {
        let start = Candle.Step.minute.start(of: second)
        minute = start
        // A price between two ticks is not counted, so it can't say that those before it were in doubt.
        guard let price, isTick || !isInDoubt && current?.isInDoubt != true else {
            if isTick { if current == nil { failedTicks += 1 } else { current?.ticks += 1 } }
            return
        }
        var candle = Candle(start: start, price, isInDoubt: isInDoubt)
        if !isTick { (candle.ticks, candle.fresh) = (0, 0) }
        if current == nil {
            candle.ticks += failedTicks
            (current, failedTicks) = (candle, 0)
        } else {
            current?.add(candle)
        }
    }

    /// Ends the current minute.
    /// - Returns: Its candle; `nil` if it had no valid price.
    mutating func close() -> Candle? {
        defer { (current, minute, failedTicks) = (nil, nil, 0) }
        return current
    }
}
