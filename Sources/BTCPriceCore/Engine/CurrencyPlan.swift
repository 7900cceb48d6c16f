/// How the price of one currency is kept.
package struct CurrencyPlan<C: Clock>: Sendable where C.Duration == Duration {
    package let currency: Currency
    /// Polls the sources of the currency.
    package let fetch: FetchWithFallback<C>
    /// The interval of its ticks.
    package let interval: Duration
    package let rules: SelectionRules
    /// What is known already.
    let book: ObservationBook

    package init(
        _ currency: Currency, fetch: FetchWithFallback<C>, interval: Duration, rules: SelectionRules = SelectionRules(),
        book: ObservationBook? = nil
    ) {
        self.currency = currency
        self.fetch = fetch
        self.interval = interval
        self.rules = rules
        self.book = book ?? ObservationBook(currency: currency)
    }

    var tracker: PriceTracker { PriceTracker(interval: interval, rules: rules, book: book) }
}
