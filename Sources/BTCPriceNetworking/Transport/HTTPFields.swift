import Glibc

/// The fields of a response, where they lie in the bytes received (RFC 9112, section 5).
package struct HTTPFields: Sendable {
    /// Valid lines, each with its end.
    private let lines: ArraySlice<UInt8>

    /// - Parameter lines: Lines that ``HTTPField/init(_:in:)`` accepts, each with CR LF.
    init(_ lines: ArraySlice<UInt8> = []) {
        self.lines = lines
    }

    /// The value of the first field with this name.
    /// - Parameter name: In lower case.
    func first(_ name: StaticString) -> String? {
        let bytes = lines.span
        var start = 0
        while let end = bytes.lineFeed(from: start) {
            let colon = start + name.utf8CodeUnitCount
            if colon < end, bytes[colon] == UInt8(ascii: ":"), bytes.holds(name, in: start..<colon) {
                return text(bytes.trimmed(colon + 1..<end - 1))
            }
            start = end + 1
        }
        return nil
    }

    /// All fields, in the order received.
    var all: [(name: String, value: String)] {
        let bytes = lines.span
        var all: [(name: String, value: String)] = []
        var start = 0
        while let end = bytes.lineFeed(from: start), let field = HTTPField(start..<end - 1, in: bytes) {
            all.append((text(field.name), text(field.value)))
            start = end + 1
        }
        return all
    }

    private func text(_ range: Range<Int>) -> String {
        let start = lines.startIndex
        return String(decoding: lines[start + range.lowerBound..<start + range.upperBound], as: UTF8.self)
    }
}

/// The ranges of a field's name and value in a line.
struct HTTPField {
    let name: Range<Int>
    /// Without the white space around it.
    let value: Range<Int>

    /// - Parameter line: Without its end.
    /// - Returns: `nil` if the line is no valid field. One that continues the line before is not (section 5.2).
    init?(_ line: Range<Int>, in bytes: Span<UInt8>) {
        var colon = line.lowerBound
        while colon < line.upperBound, bytes[colon].isInToken { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound, bytes[colon] == UInt8(ascii: ":") else { return nil }
        name = line.lowerBound..<colon
        value = bytes.trimmed(colon + 1..<line.upperBound)
        guard bytes.isText(value) else { return nil }
    }
}

extension Span<UInt8> {
    /// The index of the first line feed at `start` or after it.
    func lineFeed(from start: Int) -> Int? {
        withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, start < bytes.count else { return nil }
            return memchr(base + start, 0x0A, bytes.count - start).map { UnsafeRawPointer($0) - base }
        }
    }

    /// A range without the white space at its ends.
    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return start..<end
    }

    /// Whether the bytes in a range are this text, whatever the case of their letters.
    /// - Parameter text: In lower case: letters, digits and hyphens.
    func holds(_ text: StaticString, in range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for (offset, index) in range.enumerated() where self[index] | 0x20 != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether no byte is a control character, apart from the tab (RFC 9110, section 5.5).
    func isText(_ range: Range<Int>) -> Bool {
        withUnsafeBytes { bytes in
            // Without a branch, so that the compiler takes many bytes at once.
            var controls: UInt8 = 0
            for byte in UnsafeRawBufferPointer(rebasing: bytes[range]) {
                controls |= byte < 0x20 && byte != 0x09 || byte == 0x7F ? 1 : 0
            }
            return controls == 0
        }
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// Whether it may be in a field's name (RFC 9110, section 5.6.2).
    fileprivate var isInToken: Bool {
        self < 0x80 && (self < 0x40 ? Self.inToken.low : Self.inToken.high) >> (UInt64(self) & 0x3F) & 1 == 1
    }

    /// A bit for each byte below 0x40, and for each of the next 0x40: digits, letters and !#$%&'*+-.^_`|~
    private static let inToken: (low: UInt64, high: UInt64) = (0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)
}
