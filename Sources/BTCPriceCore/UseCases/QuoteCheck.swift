public import FoundationEssentials

/// Judges one answer by itself and against the source's answer before it.
///
/// What needs a second source (a jump, a frozen venue) is not judged here.
public struct QuoteCheck: Sendable {
    /// The lowest price taken for real, USD. Bitcoin passed 1 USD in February 2011; below it an answer is another pair's.
    public static let lowest: Decimal = 1
    /// The highest price taken for real, USD: more than a thousand times the price at the time of writing would be needed to
    /// reach it, and the absurd answers that were seen in the wild (850,867,136,053 USD on 2021-12-14) lie above it.
    public static let highest: Decimal = 100_000_000
    /// How far ahead of our clock a venue's time may lie and still be remembered. One wrong answer from the far future
    /// would otherwise make every later one look old.
    public static let futureTolerance: Duration = .seconds(60)

    /// - Parameters:
    ///   - loaded: The answer.
    ///   - last: The newest mark accepted from this source, where there is one.
    /// - Throws: ``PriceLoadingError/invalidData(_:)`` or ``PriceLoadingError/staleData(_:)``.
    public static func judge(_ loaded: LoadedPrice, after last: VenueMark?) throws(PriceLoadingError) {
        if !isClearlyWithin(loaded.value) { try judge(loaded.value) }
        if let last, loaded.mark.isBefore(last) {
            throw .staleData("the exchange's own time went backwards")
        }
    }

    /// Whether a price lies between the bounds by its nearest `Double`: rounding keeps the order, so that it does by itself, too. The
    /// comparison of two `Decimal` takes some thousand instructions.
    private static func isClearlyWithin(_ value: Decimal) -> Bool {
        doubleBounds.lowest < value.double && value.double < doubleBounds.highest
    }

    private static let doubleBounds = (lowest: lowest.double, highest: highest.double)

    private static func judge(_ value: Decimal) throws(PriceLoadingError) {
        guard value.isFinite else { throw .invalidData("the price is not a number") }
        guard value > 0 else { throw .invalidData("the price is \(value), not above zero") }
        guard value >= lowest, value <= highest else {
            throw .invalidData("the price is \(value), outside \(lowest) to \(highest) USD")
        }
    }

    /// The mark to remember after `loaded` was accepted at `now`; `nil` where it must not be remembered.
    public static func mark(of loaded: LoadedPrice, acceptedAt now: Timestamp) -> VenueMark? {
        guard !loaded.mark.isEmpty else { return nil }
        if let time = loaded.mark.time, time.milliseconds > now.milliseconds + futureTolerance.wholeMilliseconds {
            return nil
        }
        return loaded.mark
    }
}
