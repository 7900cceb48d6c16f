package import BTCPriceCore

/// Renders a quote for a reader: the price and its time together, so that both are always from the same quote.
package struct RenderPriceAndTimestamp: Sendable {
    private let priceFormatter: any PriceFormatter
    private let timestampFormatter: TimestampFormatter

    package init(priceFormatter: any PriceFormatter, timestampFormatter: TimestampFormatter) {
        self.priceFormatter = priceFormatter
        self.timestampFormatter = timestampFormatter
    }

    /// - Parameter isDerived: Whether it is derived, which the text marks.
    package func execute(_ quote: PriceQuote, isDerived: Bool = false) -> FormattedPrice {
        let price = priceFormatter.string(from: quote.value, currency: quote.currency)
        return FormattedPrice(
            price: isDerived ? PriceTexts.derived(price) : price,
            timestamp: timestampFormatter.string(from: quote.timestamp))
    }
}

/// A quote as text for people. Made by ``RenderPriceAndTimestamp``.
package struct FormattedPrice: Sendable, Hashable {
    /// `$68,901.23`
    package let price: String
    /// `Aug 25, 14:30`
    package let timestamp: String
}

package protocol PriceFormatter: Sendable {
    /// - Parameter currency: ISO 4217 code.
    func string(from value: Price, currency: String) -> String
}
