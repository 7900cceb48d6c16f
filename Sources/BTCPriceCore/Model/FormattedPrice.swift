/// A quote as a person reads it. Made by ``RenderPriceAndTimestamp``.
package struct FormattedPrice: Sendable, Hashable {
    /// `$68,901.23`
    package let price: String
    /// `Aug 25, 14:30`
    package let timestamp: String

    /// - Parameters:
    ///   - price: The price's text.
    ///   - timestamp: The timestamp's text.
    package init(price: String, timestamp: String) {
        self.price = price
        self.timestamp = timestamp
    }
}
