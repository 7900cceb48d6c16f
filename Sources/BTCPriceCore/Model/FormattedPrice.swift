/// A quote as a person reads it. Made by ``RenderPriceAndTimestamp``.
public struct FormattedPrice: Sendable, Hashable {
    /// `$68,901.23`
    public let price: String
    /// `Aug 25, 14:30`
    public let timestamp: String

    /// - Parameters:
    ///   - price: The price's text.
    ///   - timestamp: The timestamp's text.
    public init(price: String, timestamp: String) {
        self.price = price
        self.timestamp = timestamp
    }
}
