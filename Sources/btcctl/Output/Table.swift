import BTCPriceCore

/// Text in columns, and durations for people.
enum Table {
    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// Rows with aligned columns, two spaces apart. Trailing spaces are removed.
    static func lines(_ rows: [[String]]) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { padded($1, widths[$0]) }.joined(separator: "  ").withoutTrailingSpaces
        }
    }

    /// A text behind a head, in lines shorter than `width` columns. All but the first one are indented by the head's width.
    static func wrapped(_ head: String, _ text: String, width: Int) -> [String] {
        guard head.count + text.count >= width else { return [head + text] }
        let words = text.split(separator: " ").map(String.init)
        let lines = wrapped(words, width: max(20, width - head.count))
        return lines.enumerated().map { ($0 == 0 ? head : padded("", head.count)) + $1 }
    }

    /// `0.4 s`, `12 s`, `3 min`, `2 h 5 min`, `3 d 4 h`
    static func text(_ duration: Duration) -> String {
        let tenthsInAll = max(0, duration.wholeMilliseconds + 50) / 100
        let (seconds, tenths) = tenthsInAll.quotientAndRemainder(dividingBy: 10)
        switch seconds {
        case ..<10:
            return tenths == 0 ? "\(seconds) s" : "\(seconds).\(tenths) s"
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }

    /// Wraps words into lines shorter than `width` columns.
    static func wrapped(_ words: [String], width: Int) -> [String] {
        var lines: [String] = []
        for word in words {
            if let last = lines.last, last.count + 1 + word.count < width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(word)
            }
        }
        return lines
    }
}
