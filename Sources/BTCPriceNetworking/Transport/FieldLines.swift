/// Goes over the lines of an answer's fields (RFC 9112, section 5), each of which ends with CR LF.
struct FieldLines {
    /// Where a line's parts stand.
    struct Line: Sendable, Hashable {
        let name: Range<Int>
        /// Without the white space around it.
        let value: Range<Int>

        /// Whether the name is this one, which is in lower case.
        func isNamed(_ other: StaticString, in bytes: [UInt8]) -> Bool {
            bytes.isText(other, at: name)
        }
    }

    private let bytes: [UInt8]
    private var position = 0
    /// Whether a line was met that is none.
    private(set) var isMalformed = false

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func next() -> Line? {
        guard position < bytes.count, !isMalformed else { return nil }
        let start = position
        var colon: Int?
        while position < bytes.count, bytes[position] != UInt8(ascii: "\r") {
            let byte = bytes[position]
            if byte == UInt8(ascii: ":"), colon == nil { colon = position }
            // Neither a line end of another kind nor a NUL hides in a line; nor white space in a name, which also is how a line
            // would begin that continues the one before (section 5.2).
            if byte == 0 || byte == UInt8(ascii: "\n") || (byte.isBlank && colon == nil) {
                isMalformed = true
                return nil
            }
            position += 1
        }
        guard let colon, colon > start, position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "\n") else {
            isMalformed = true
            return nil
        }
        let value = bytes[colon + 1..<position].trimmed
        position += 2
        return Line(name: start..<colon, value: value)
    }
}

extension [UInt8] {
    /// Whether a part of it, in lower case, is a text.
    func isText(_ text: StaticString, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return withUnsafeBufferPointer { bytes in
            for (offset, place) in range.enumerated() {
                let byte = bytes[place]
                let lower = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
                if lower != text.utf8Start[offset] { return false }
            }
            return true
        }
    }
}

extension ArraySlice<UInt8> {
    /// Its place without the white space around it.
    var trimmed: Range<Int> {
        var place = startIndex..<endIndex
        while let first = place.first, self[first].isBlank { place.removeFirst() }
        while let last = place.last, self[last].isBlank { place.removeLast() }
        return place
    }

    /// Whether no part of it could be taken for the end of a line (RFC 9112, section 2.2), or of a text.
    var isOneLine: Bool {
        allSatisfy { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") && $0 != 0 }
    }
}

extension UInt8 {
    /// Optional white space (RFC 9110, section 5.6.3).
    fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
