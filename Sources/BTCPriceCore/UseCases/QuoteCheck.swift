/// Judges one answer by itself and against the source's answer before it.
///
/// What needs a second source (a jump, a frozen venue) is not judged here.
package struct QuoteCheck: Sendable {
    /// The lowest price taken for real, USD. Bitcoin passed 1 USD in February 2011; below it an answer is another pair's.
    package static let lowest: Price = 1
    /// The highest price taken for real, USD: more than a thousand times the price at the time of writing would be needed to
    /// reach it, and the absurd answers that were seen in the wild (850,867,136,053 USD on 2021-12-14) lie above it.
    package static let highest: Price = 100_000_000
    /// What is taken for the worth of a USDT in dollars. It was never seen outside of 0.8 to 1.1.
    static let tetherRates = Price(5, scale: 1)...2

    /// - Parameters:
    ///   - loaded: The answer.
    ///   - last: The newest mark accepted from this source, where there is one.
    ///   - now: The present wall-clock time, our clock's own error allowed for.
    ///   - oldest: How old a price may be by the venue's own time.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` or ``PriceLoadingError/staleData(_:)``.
    package static func judge(
        _ loaded: LoadedPrice, after last: VenueMark?, at now: Timestamp, oldest: Duration
    ) throws(PriceLoadingError) {
        try judge(loaded.value)
        if let last, loaded.mark.isBefore(last) {
            throw .staleData("the exchange's own time went backwards")
        }
        if let time = loaded.mark.time {
            let age = now.milliseconds - time.milliseconds
            if age > oldest.wholeMilliseconds {
                throw .staleData("its price is \(age / 1000) s old by the exchange's own time")
            }
        }
    }

    private static func judge(_ value: Price) throws(PriceLoadingError) {
        guard value > 0 else { throw .invalidData("the price is \(value), not above zero") }
        guard value >= lowest, value <= highest else {
            throw .invalidData("the price is \(value), outside \(lowest) to \(highest) USD")
        }
    }

    /// The mark to remember after `loaded` was accepted at `now`; `nil` if the venue gave none.
    ///
    /// A time ahead of ours is remembered as the present: one wrong answer from the future would otherwise make every later one look old.
    static func mark(of loaded: LoadedPrice, acceptedAt now: Timestamp) -> VenueMark? {
        guard !loaded.mark.isEmpty else { return nil }
        guard let time = loaded.mark.time, time > now else { return loaded.mark }
        return VenueMark(time: now, trade: loaded.mark.trade)
    }
}
