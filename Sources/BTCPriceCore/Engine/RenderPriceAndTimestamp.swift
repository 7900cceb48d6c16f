/// Renders a quote for a reader: the price and its time together, so that they are always of the same quote.
package struct RenderPriceAndTimestamp: Sendable {
    private let priceFormatter: any PriceFormatter
    private let timestampFormatter: any TimestampFormatter

    /// - Parameters:
    ///   - priceFormatter: Makes the price's text.
    ///   - timestampFormatter: Makes the timestamp's text.
    package init(priceFormatter: any PriceFormatter, timestampFormatter: any TimestampFormatter) {
        self.priceFormatter = priceFormatter
        self.timestampFormatter = timestampFormatter
    }

    /// - Returns: The texts of `quote`.
    package func execute(_ quote: PriceQuote) -> FormattedPrice {
        FormattedPrice(
            price: priceFormatter.string(from: quote.value, currency: quote.currency),
            timestamp: timestampFormatter.string(from: quote.timestamp))
    }
}
