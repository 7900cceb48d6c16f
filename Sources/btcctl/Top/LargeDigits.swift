import BTCPriceFeature

/// Digits three rows high, drawn with half blocks (Unicode, Block Elements).
enum LargeDigits {
    static let height = 3
    /// The upper, middle and lower row of each character.
    private static let shapes: [Character: [String]] = [
        "0": ["█▀█", "█ █", "▀▀▀"], "1": ["▀█ ", " █ ", "▀▀▀"], "2": ["▀▀█", "█▀▀", "▀▀▀"],
        "3": ["▀▀█", " ▀█", "▀▀▀"], "4": ["█ █", "▀▀█", "  ▀"], "5": ["█▀▀", "▀▀█", "▀▀▀"],
        "6": ["█▀▀", "█▀█", "▀▀▀"], "7": ["▀▀█", "  █", "  ▀"], "8": ["█▀█", "█▀█", "▀▀▀"],
        "9": ["█▀█", "▀▀█", "▀▀▀"], ".": [" ", " ", "▀"], ",": [" ", " ", "█"],
    ]

    /// The rows of a text with its first number large. What stands around it is written as it is, in the last row.
    static func rows(_ text: String) -> [String] {
        let before = text.prefix { !$0.isNumber }
        let number = text.dropFirst(before.count).prefix { shapes[$0] != nil }
        let after = text.dropFirst(before.count + number.count)
        return (0..<height).map { row in
            let plain = { (part: Substring) in
                row == height - 1 ? String(part) : String(repeating: " ", count: part.count)
            }
            return plain(before) + number.compactMap { shapes[$0]?[row] }.joined(separator: " ") + plain(after)
        }
    }
}
