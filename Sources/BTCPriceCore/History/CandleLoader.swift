package struct LoadedCandles: Sendable, Hashable {
    /// The valid ones, from the oldest to the newest.
    package var candles: [Candle]
    /// The number of those that are not valid, and not used.
    package let unused: Int

    package init(_ candles: [Candle], unused: Int = 0) {
        self.candles = candles
        self.unused = unused
    }
}

/// Requests the candles of one market.
package protocol CandleLoader: Sendable {
    var market: Market { get }

    /// The maximum number of candles in one response.
    var page: Int { get }

    /// Whether the exchange serves only the newest ``page`` candles of each step.
    var hasNewestOnly: Bool { get }

    /// Requests candles, once.
    ///
    /// Must end promptly when its task is cancelled, with ``PriceLoadingError/cancelled``.
    /// - Parameters:
    ///   - step: A minute or longer.
    ///   - range: The starts of the candles, in Unix seconds; at most ``page`` candles.
    /// - Returns: The available candles. A span without a trade may have none.
    func load(_ step: Candle.Step, in range: Range<Int64>) async throws(PriceLoadingError) -> LoadedCandles
}

extension CandleLoader {
    /// The start of the oldest candle that it has, Unix seconds.
    /// - Parameter end: The end of its newest complete one.
    func reach(_ step: Candle.Step, before end: Int64) -> Int64 {
        hasNewestOnly ? end - Int64(page) * step.seconds + step.seconds : .min
    }
}
