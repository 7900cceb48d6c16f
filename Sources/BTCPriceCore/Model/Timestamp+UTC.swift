extension Timestamp {
    /// `2026-11-21 09:30:05 UTC`, independent of the time zone and the locale.
    package var utcText: String {
        let seconds = milliseconds.flooredQuotient(by: 1000)
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
        let date = "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))"
        return "\(date) \((second / 3600).padded(2)):\((second / 60 % 60).padded(2)):\((second % 60).padded(2)) UTC"
    }

    /// `2026-11-21`
    package var utcDate: String { String(utcText.prefix { $0 != " " }) }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
