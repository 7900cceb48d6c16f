package import BTCPriceCore

/// Renders a quote for a reader: the price and its time together, so that both are always from the same quote.
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

    /// - Parameter isDerived: Whether it is no market's price, which is marked.
    /// - Returns: The texts of `quote`.
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

    package init(price: String, timestamp: String) {
        self.price = price
        self.timestamp = timestamp
    }
}

/// Formats a price as text for people.
package protocol PriceFormatter: Sendable {
    /// - Parameters:
    ///   - value: The exact price.
    ///   - currency: ISO 4217 code.
    func string(from value: Price, currency: String) -> String
}

/// Formats a point in time as text for people.
package protocol TimestampFormatter: Sendable {
    /// - Parameter timestamp: Wall-clock time.
    func string(from timestamp: Timestamp) -> String
}
