/// Something to report to the operator. Core returns events and logs nothing: the code that writes the journal decides what is logged,
/// and how often.
package enum PriceEvent: Sendable, Hashable {
    /// A tick has ended: its number, how late it began, and how many before it were skipped.
    case ticked(Int64, lateness: Duration, skipped: Int64)
    /// There is a current price again, or the first one. `failedTicks` failed before it.
    case becameFresh(PriceQuote, failedTicks: Int64)
    /// No source gave a price. `quote` is the one shown meanwhile.
    case becameStale(failure: String, quote: PriceQuote?)
    /// A source was requested and gave no valid price.
    case sourceFailed(SourceFailure)
    /// A source that had failed the last time gave a price.
    case sourceRecovered(String)
    /// Sources that are too far from a median to count.
    case outliers([String], value: Price)
    /// USDT is off its peg, or back at it.
    case pegChanged(PegRate)
    /// The last valid price can't be stored. The price is still kept up to date.
    case saveFailed(PriceStoreError)
    /// The last valid price can be stored again.
    case saveRecovered

    /// The event with the pair next to each source, and with the currency, because another currency may have the same source.
    func named(after currency: Currency) -> PriceEvent {
        switch self {
        case .sourceFailed(let failure):
            .sourceFailed(
                SourceFailure(
                    source: "\(failure.source) \(currency.pair)", error: failure.error, cooldown: failure.cooldown))
        case .sourceRecovered(let source): .sourceRecovered("\(source) \(currency.pair)")
        case .becameStale(let failure, let quote): .becameStale(failure: "\(currency): \(failure)", quote: quote)
        case .ticked, .becameFresh, .outliers, .pegChanged, .saveFailed, .saveRecovered: self
        }
    }
}
