import BTCPriceCore

/// Parses the times in exchanges' responses, to whole milliseconds.
enum VenueTime {
    /// Milliseconds since 1970 of `2026-06-19T16:43:33.016274911Z` or `2026-06-19T18:43:33+02:00`: any number of digits after the
    /// point (RFC 3339, section 5.6; Coinbase sends six or nine). Without an offset it is UTC (bitFlyer), and a day alone is its
    /// midnight. `nil` for anything else.
    static func milliseconds(fromISO8601 text: String) -> Int64? {
        var bytes = Array(text.utf8)
        if bytes.count == 10 { bytes += Array("T00:00:00".utf8) }
        var offset: Int64 = 0
        func number(_ range: Range<Int>) -> Int64? { Self.number(bytes[range]) }
        // Databases write a blank, and some a small letter.
        if bytes.count > 10, [UInt8(ascii: " "), UInt8(ascii: "t")].contains(bytes[10]) {
            bytes[10] = UInt8(ascii: "T")
        }
        if bytes.last == UInt8(ascii: "z") { bytes[bytes.count - 1] = UInt8(ascii: "Z") }
        // `+0000`
        if bytes.count >= 24, bytes.suffix(4).allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(bytes[bytes.count - 5])
        {
            bytes.insert(UInt8(ascii: ":"), at: bytes.count - 2)
        }
        if bytes.last == UInt8(ascii: "Z") {
            bytes.removeLast()
        } else if bytes.count >= 25, bytes[bytes.count - 3] == UInt8(ascii: ":"),
            let sign: Int64 = [UInt8(ascii: "+"): 1, UInt8(ascii: "-"): -1][bytes[bytes.count - 6]]
        {
            guard let hours = number(bytes.count - 5..<bytes.count - 3),
                let minutes = number(bytes.count - 2..<bytes.count),
                hours < 24, minutes < 60
            else { return nil }
            offset = sign * (hours * 60 + minutes) * 60_000
            bytes.removeLast(6)
        }
        let separators: [(Int, Character)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")]
        guard bytes.count >= 19, separators.allSatisfy({ bytes[$0.0] == $0.1.asciiValue }),
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction: Int64 = 0
        if bytes.count > 19 {
            let digits = bytes.count - 20
            guard bytes[19] == UInt8(ascii: "."), (1...18).contains(digits), number(20..<20 + digits) != nil,
                let leading = number(20..<20 + min(3, digits))
            else { return nil }
            fraction = leading * [100, 10, 1][min(3, digits) - 1]
        }
        let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        return seconds * 1000 + fraction - offset
    }

    /// The number that these digits are; `nil` if there is anything else.
    /// - Parameter digits: At most 18.
    private static func number(_ digits: some Sequence<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// Milliseconds since 1970 of a number of seconds, milliseconds, microseconds or nanoseconds since then. For times from 2001 to
    /// 5138 the magnitude determines the unit. `nil` for anything else.
    ///
    /// An exchange may change its unit without notice, as Binance's public data did on 2025-01-01.
    static func milliseconds(fromEpoch number: Int64) -> Int64? {
        switch number {
        case 1_000_000_000..<100_000_000_000: number * 1000
        case 1_000_000_000_000..<100_000_000_000_000: number
        case 1_000_000_000_000_000..<100_000_000_000_000_000: number / 1000
        case 1_000_000_000_000_000_000...: number / 1_000_000
        default: nil
        }
    }

    /// Milliseconds since 1970 of a date in a header, in any of the three forms that a recipient must accept (RFC 9110, section
    /// 5.6.7): `Sat, 21 Nov 2026 14:30:05 GMT`, `Saturday, 21-Nov-26 14:30:05 GMT`, `Sat Nov 21 14:30:05 2026`.
    static func milliseconds(fromHTTPDate text: String) -> Int64? {
        var text = text
        return text.withUTF8 { bytes in
            // The ranges of the words: the longest form has eight.
            var words: [Range<Int>] = []
            words.reserveCapacity(8)
            var start: Int?
            for index in 0...bytes.count {
                let isEnd = index == bytes.count || [0x20, 0x2C, 0x2D, 0x3A].contains(bytes[index])
                if !isEnd { start = start ?? index }
                guard isEnd, let begun = start else { continue }
                guard words.count < 8 else { return nil }
                words.append(begun..<index)
                start = nil
            }
            // Without a zone the month comes first and the year last.
            let hasZone = words.count == 8 && bytes[words[7]].elementsEqual("GMT".utf8)
            guard hasZone || words.count == 7 else { return nil }
            let order = hasZone ? [1, 2, 3, 4, 5, 6] : [2, 1, 6, 3, 4, 5]
            func number(_ index: Int) -> Int64? {
                let digits = bytes[words[order[index]]]
                return digits.count <= 4 ? Self.number(digits) : nil
            }
            let name = bytes[words[order[1]]]
            guard let month = Timestamp.monthNames.firstIndex(where: { name.elementsEqual($0.utf8) }),
                let day = number(0), let year = number(2), let hour = number(3), let minute = number(4),
                let second = number(5), (1...31).contains(day), (0..<24).contains(hour), (0..<60).contains(minute),
                (0...60).contains(second)
            else { return nil }
            // Two digits stand for the years 1970 to 2069.
            let days = days(year < 70 ? 2000 + year : year < 100 ? 1900 + year : year, Int64(month) + 1, day)
            return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000
        }
    }

    /// Days since 1970-01-01 in the Gregorian calendar. Years start in March, so a leap day is the last day of a year.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // 400 years are added for the year before 0, since division rounds towards zero.
        let shifted = (month > 2 ? year : year - 1) + 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - (719_468 + 146_097)
    }
}
