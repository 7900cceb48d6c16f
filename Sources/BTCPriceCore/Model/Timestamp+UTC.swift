extension Timestamp {
    /// In the C locale and in HTTP.
    package static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Unix seconds, rounded down, before 1970 too.
    package var wholeSeconds: Int64 { milliseconds.flooredQuotient(by: 1000) }

    /// `2026-11-21 09:30:05 UTC`
    package var utcText: String {
        let (date, time) = utc
        return "\(date) \(time) UTC"
    }

    /// `2026-11-21` and `09:30:05`, independent of the time zone and the locale.
    package var utc: (date: String, time: String) { Self.utc(wholeSeconds) }

    /// The same of Unix seconds, or of a date and time elsewhere as the second at which the clocks of UTC show it.
    package static func utc(_ seconds: Int64) -> (date: String, time: String) {
        let days = seconds.flooredQuotient(by: 86_400)
        let second = seconds - days * 86_400
        // The Gregorian calendar in eras of 400 years. Each year starts in March, so that a leap day is its last day.
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (
            "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))",
            "\((second / 3600).padded(2)):\((second / 60 % 60).padded(2)):\((second % 60).padded(2))"
        )
    }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
