/// The fixed texts around a price.
package enum PriceTexts {
    /// Shown instead of a price and a time if there is none.
    package static let placeholder = "-"
    /// Shown while there is no value yet, and if a requested price is not available.
    package static let failed = "Failed to update value."
    /// Shown before the last value while the updates are paused.
    package static let paused = "Paused."
    /// How to end a pause.
    package static let resume =
        "'btcctl resume' starts the updates again. An idle pause ends with this call."
    /// Shown with a price that no second source has confirmed.
    package static let unconfirmed = "Unconfirmed: no second source has confirmed this price."

    /// The age from which a stale price is shown with its age, in seconds.
    private static let day: Int64 = 86_400

    /// The line of a price: `Aug 25, 14:30 - $68,901.23`.
    package static func line(_ timestamp: String, _ price: String) -> String {
        "\(timestamp) - \(price)"
    }

    /// The text shown with the last valid price while it is not current.
    /// - Parameters:
    ///   - timestamp: The formatted time of its observation.
    ///   - age: Its age, included from 24 hours on; `nil` if it is not known.
    ///   - isPaused: Whether the updates are paused rather than failed.
    package static func stale(from timestamp: String, age: Duration? = nil, isPaused: Bool = false) -> String {
        let days = (age?.components.seconds ?? 0) / day
        let ago = days > 0 ? " (\(days) day\(days == 1 ? "" : "s") ago)" : ""
        return "\(isPaused ? paused : failed) Displaying last updated value from \(timestamp)\(ago)"
    }
}
