/// How long a price counts: two intervals, and longer if the limits of its source allow no request in that time.
enum PaceRule {
    /// How long a price stays fresh, milliseconds.
    /// - Parameters:
    ///   - freshFor: Two intervals, milliseconds.
    ///   - pace: The minimum time until its source can give another one.
    static func lasts(_ freshFor: Int64, _ pace: Duration) -> Int64 {
        let pace = pace.wholeMilliseconds
        return freshFor + (2 * pace > freshFor ? pace : 0)
    }

    /// Whether an earlier price supports a median: for a second, and until its source's limits allow the next request.
    static func supports(_ earlier: MarketObservation, at boottime: BootTime, _ freshFor: Int64) -> Bool {
        boottime - earlier.at <= freshFor + 1000 + earlier.pace.wholeMilliseconds
    }
}
