extension [String] {
    /// `binance`, `binance and kraken`, `binance, bitstamp and kraken`
    package var listed: String {
        count > 1 ? "\(dropLast().joined(separator: ", ")) and \(self[count - 1])" : first ?? ""
    }
}

extension String {
    /// The text up to its last character that is no space.
    package var withoutTrailingSpaces: String {
        guard let last = utf8.lastIndex(where: { $0 != UInt8(ascii: " ") }) else { return "" }
        return String(self[..<utf8.index(after: last)])
    }

    /// The text with control characters (C0, DEL, C1) and characters that change the direction or break the line (Unicode Standard
    /// Annex 9) written as `\u{1b}`: a terminal would act on them or show text elsewhere.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isObeyed {
                text += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

// In place of `replacing`, `firstRange`, `contains` for texts and `wholeMatch`, with which the standard library's regular expressions are
// linked: a tenth of the client.
extension StringProtocol {
    /// The text with these characters replaced, as `<` by `&lt;`.
    package func escaped(_ escapes: [Unicode.Scalar: String]) -> String {
        unicodeScalars.reduce(into: "") { text, scalar in
            if let escape = escapes[scalar] { text += escape } else { text.unicodeScalars.append(scalar) }
        }
    }

    /// Where a text occurs first; `nil` if it does not.
    package func start(of text: String) -> Index? { indices.first { self[$0...].hasPrefix(text) } }

    /// Whether a text occurs in it.
    package func holds(_ text: String) -> Bool { start(of: text) != nil }

    /// The text with another one in place of each occurrence of `text`.
    package func replaced(_ text: String, by other: String) -> String {
        var (result, rest) = ("", self[...])
        while let start = rest.start(of: text) {
            result += rest[..<start] + other
            rest = rest[start...].dropFirst(text.count)
        }
        return result + rest
    }

    /// Whether it is not empty, and has only ASCII letters, digits and these characters.
    package func isWord(with others: String) -> Bool {
        !isEmpty && allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || others.contains($0) }
    }

    /// The number, if it is one of at most so many digits without a sign.
    package func wholeNumber(digits: Int) -> Int? {
        count <= digits && utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(self) : nil
    }

    /// Whether a host's name or address is this machine's.
    package var isLoopbackHost: Bool {
        let numbers = split(separator: ".", omittingEmptySubsequences: false)
        return self == "localhost" || self == "::1"
            || numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { $0.wholeNumber(digits: 3) != nil }
    }
}

extension Unicode.Scalar {
    fileprivate var isObeyed: Bool {
        switch value {
        case ..<0x20, 0x7F...0x9F, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension FixedWidthInteger {
    /// The number with at least this many digits, with zeros before it.
    @inlinable package func padded(_ width: Int, radix: Int = 10) -> String {
        let digits = String(self, radix: radix)
        return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
    }
}
