/// Turns a price into the text a person reads.
package protocol PriceFormatter: Sendable {
    /// - Parameters:
    ///   - value: The exact price.
    ///   - currency: ISO 4217.
    func string(from value: Price, currency: String) -> String
}

/// Turns a point in time into the text a person reads.
package protocol TimestampFormatter: Sendable {
    /// - Parameter timestamp: Wall-clock time.
    func string(from timestamp: Timestamp) -> String
}
