/// Something to report to the operator. Core logs nothing: the code that writes the journal decides what is logged, and how often.
package enum PriceEvent: Sendable, Hashable {
    /// A tick has ended: its number, how late it began, and how many before it were skipped.
    case ticked(Int64, lateness: Duration, skipped: Int64)
    /// What is kept has changed: the currencies, with the names of their sources.
    case kept([Currency: Set<String>])
    /// There is a current price again, or the first one. `failedTicks` failed before it.
    case becameFresh(PriceQuote, failedTicks: Int64)
    /// No source gave a price. `quote` is the one shown meanwhile.
    case becameStale(failure: String, quote: PriceQuote?, currency: Currency = .usd)
    /// Other sources contradict the shown price, and are not outvoted.
    case contradicted(warning: String, PriceQuote)
    /// No other source contradicts the shown price any more.
    case contradictionEnded(PriceQuote, after: Duration)
    /// No source has a price, and one is derived instead.
    case derivedInstead(failure: String, PriceQuote, Derivation)
    /// A source has a price again, and none is derived any more.
    case marketAgain(PriceQuote)
    /// A source of reference rates gave none. `held` is whether rates that were received before are used.
    case ratesFailed(String, PriceLoadingError, held: Bool = true)
    /// A source of reference rates that had failed gave them.
    case ratesRecovered(String)
    /// Rates of a source are not used, because they have moved too far and no second source agrees.
    case ratesRefused(String, [Currency])
    /// A source was requested and gave no valid price.
    case sourceFailed(SourceFailure)
    /// A source that had failed the last time gave a price.
    case sourceRecovered(String)
    /// Sources that are too far from a median to count.
    case outliers([String], value: Price)
    /// The sources whose prices most others contradict, and how far they are from the shown price, in millionths of it. Reported at each
    /// tick while there are any, and once when there are none.
    case outvoted([String: Int64], Currency)
    /// The shown price moved further than a price may without another exchange, in millionths of it.
    case jumped(Int64, Currency)
    /// USDT is off its peg, or back at it.
    case pegChanged(PegRate)
    /// USDT is off its peg. Reported in each round, and once with `nil` when it is not any more, or when that is not known any more.
    case offPeg(PegRate?)
    /// A source dates its prices in the future: they count as prices without a time.
    case timeAhead(String)
    /// This machine's clock is wrong, by the time that most sources agree on.
    case clockDiffers(ClockDifference)
    /// It agrees with most sources again.
    case clockAgrees
    /// The last valid price can't be stored. The price is still kept up to date.
    case saveFailed(PriceStoreError)
    case saveRecovered

    /// The event with the pair next to each source, and with the currency, because another currency may have the same source.
    func named(after currency: Currency) -> PriceEvent {
        switch self {
        case .sourceFailed(let failure):
            .sourceFailed(
                SourceFailure(
                    source: "\(failure.source) \(currency.pair)", error: failure.error, cooldown: failure.cooldown))
        case .sourceRecovered(let source): .sourceRecovered("\(source) \(currency.pair)")
        case .becameStale(let failure, let quote, _):
            .becameStale(failure: "\(currency): \(failure)", quote: quote, currency: currency)
        case .derivedInstead(let failure, let quote, let derivation):
            .derivedInstead(failure: "\(currency): \(failure)", quote, derivation)
        default: self
        }
    }
}
