/// The fixed texts around a price.
public enum PriceTexts {
    /// Stands for a price and for a time that there never was.
    public static let placeholder = "-"
    /// Said while nothing was ever held, and where a price that was asked for can't be had.
    public static let failed = "Failed to update value."

    /// The line of a price: `Aug 25, 14:30 - $68,901.23`.
    public static func line(_ timestamp: String, _ price: String) -> String {
        "\(timestamp) - \(price)"
    }

    /// Said while the last valid price is shown.
    /// - Parameter timestamp: When that was observed, as the reader reads times.
    public static func stale(from timestamp: String) -> String {
        "\(failed) Displaying last updated value from \(timestamp)"
    }
}
