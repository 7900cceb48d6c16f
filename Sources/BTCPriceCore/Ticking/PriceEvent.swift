/// Something worth telling an operator. Core returns events and logs nothing: what is said of them, and how often, is decided
/// where the journal is.
package enum PriceEvent: Sendable, Hashable {
    /// A tick has ended: its number, how late it began, and how many before it were skipped.
    case ticked(Int64, lateness: Duration, skipped: Int64)
    /// There is a price where there was none, or a current one where there was an old one. `failedTicks` failed before it.
    case becameFresh(PriceQuote, failedTicks: Int64)
    /// No source gave a price. `quote` is the one shown meanwhile.
    case becameStale(failure: String, quote: PriceQuote?)
    /// A source was asked and gave nothing.
    case sourceFailed(SourceFailure)
    /// A source that had failed the last time gave a price.
    case sourceRecovered(String)
    /// In a median a source lies far from the others, which the spread tells.
    case outliers([String], value: Price)
    /// USDT is off its peg, or back at it.
    case tetherChanged(TetherRate)
    /// The last valid price can't be kept. The price goes on.
    case saveFailed(PriceStoreError)
    /// It can be kept again.
    case saveRecovered
}
