/// The fixed texts around a price.
package enum PriceTexts {
    /// Stands for a price and for a time that there never was.
    package static let placeholder = "-"
    /// Said while nothing was ever held, and if a price that was asked for can't be had.
    package static let failed = "Failed to update value."
    /// Said before the last value while the updates are paused.
    package static let paused = "Paused."
    /// What to do about a pause.
    package static let resume =
        "'btcctl resume' starts the updates again. An idle pause ends with this call."
    /// Said of a price that no second source has confirmed.
    package static let unconfirmed = "Unconfirmed: no second source has confirmed this price."

    /// From this age on a stale price's age is told beside its time.
    private static let day: Int64 = 86_400

    /// The line of a price: `Aug 25, 14:30 - $68,901.23`.
    package static func line(_ timestamp: String, _ price: String) -> String {
        "\(timestamp) - \(price)"
    }

    /// Said while the last valid price is shown.
    /// - Parameters:
    ///   - timestamp: When that was observed, as the reader reads times.
    ///   - age: How old it is; told beyond 24 hours. `nil` if that is not known.
    ///   - isPaused: Whether the updates are paused, and have not failed.
    package static func stale(from timestamp: String, age: Duration? = nil, isPaused: Bool = false) -> String {
        let days = (age?.components.seconds ?? 0) / day
        let ago = days > 0 ? " (\(days) day\(days == 1 ? "" : "s") ago)" : ""
        return "\(isPaused ? paused : failed) Displaying last updated value from \(timestamp)\(ago)"
    }
}
