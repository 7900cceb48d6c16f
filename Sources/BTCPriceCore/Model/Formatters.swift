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
