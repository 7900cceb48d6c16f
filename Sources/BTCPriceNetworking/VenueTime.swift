/// Reads the times that exchanges put into their answers, to whole milliseconds.
enum VenueTime {
    /// Milliseconds since 1970 of `2026-06-19T16:43:33.016274911Z`: UTC, any number of digits after the point
    /// (RFC 3339, section 5.6; Coinbase sends six or nine). `nil` for anything else.
    static func milliseconds(fromRFC3339 text: String) -> Int64? {
        let bytes = Array(text.utf8)
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            return value
        }
        let separators: [(Int, Character)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")]
        guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"),
            separators.allSatisfy({ bytes[$0.0] == $0.1.asciiValue }),
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction: Int64 = 0
        if bytes.count > 20 {
            let digits = bytes.count - 21
            guard bytes[19] == UInt8(ascii: "."), (1...18).contains(digits), number(20..<20 + digits) != nil,
                let leading = number(20..<20 + min(3, digits))
            else { return nil }
            fraction = leading * [100, 10, 1][min(3, digits) - 1]
        }
        let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        return seconds * 1000 + fraction
    }

    /// Days since 1970-01-01 in the Gregorian calendar. Counts from March, so that a leap day is a year's last.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    }
}
