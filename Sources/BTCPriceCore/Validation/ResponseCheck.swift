/// Checks one price by itself, and against the market's previous price.
package enum ResponseCheck {
    /// The accepted values of a USDT in dollars. It has never been seen outside of 0.8 to 1.1.
    package static let pegRates = Price(5, scale: 1)...2

    /// - Parameters:
    ///   - last: The newest position accepted from this market, if there is one.
    ///   - now: The current wall-clock time, corrected by the venues' clocks.
    ///   - oldest: The maximum age of a price by the venue's own time.
    ///   - quoted: For how long its quotes have been the same, milliseconds; `nil` without quotes.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` or ``PriceLoadingError/staleData(_:)``.
    static func check(
        _ loaded: LoadedPrice, in currency: Currency, after last: FeedPosition?, at now: Timestamp, oldest: Duration,
        quoted: Int64? = nil
    ) throws(PriceLoadingError) {
        let (value, range) = (loaded.value, currency.prices)
        guard value > 0 else { throw .invalidData("the price is \(value), not above zero") }
        guard range.contains(value) else {
            throw .invalidData("the price is \(value), outside \(range.lowerBound) to \(range.upperBound) \(currency)")
        }
        if let last, loaded.position.isBefore(last) {
            let isByTime = last.time != nil && loaded.position.time != nil
            throw .staleData(
                isByTime ? "the exchange's own time went backwards" : "its trade number is lower than the last one")
        }
        if let time = loaded.position.time {
            let age = now.milliseconds - time.milliseconds
            if age > oldest.wholeMilliseconds, quoted.map({ $0 > oldest.wholeMilliseconds }) ?? true {
                throw .staleData("its price is \(age / 1000) s old by the exchange's own time")
            }
        }
    }

    /// The position to remember after `loaded` was accepted at `now`; `nil` if the venue sent none.
    ///
    /// A time in the future is remembered as the current time: otherwise one wrong response would make every later one look old.
    static func position(of loaded: LoadedPrice, acceptedAt now: Timestamp) -> FeedPosition? {
        guard !loaded.position.isEmpty else { return nil }
        guard let time = loaded.position.time, time > now else { return loaded.position }
        return FeedPosition(time: now, sequence: loaded.position.sequence)
    }
}
