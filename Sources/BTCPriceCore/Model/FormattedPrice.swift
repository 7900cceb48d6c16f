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
