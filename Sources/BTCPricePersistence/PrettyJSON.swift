/// Writes an object as JSON for a person to read: keys in the order they come in, two spaces a level.
///
/// The bytes are JSONEncoder's with `prettyPrinted`, `sortedKeys` and `withoutEscapingSlashes`, as long as the keys come in sorted. The
/// file is written at every tick, and the encoder takes ten times as long over it.
struct PrettyJSON {
    private(set) var bytes: [UInt8] = []
    private var depth = 1
    private var isFirst = true

    /// - Parameter members: Writes the members of the outermost object.
    init(_ members: (inout PrettyJSON) -> Void) {
        bytes.reserveCapacity(1024)
        bytes.append(UInt8(ascii: "{"))
        members(&self)
        depth -= 1
        close(UInt8(ascii: "}"))
    }

    mutating func object(_ key: String, _ members: (inout PrettyJSON) -> Void) {
        self.key(key)
        bytes.append(UInt8(ascii: "{"))
        depth += 1
        isFirst = true
        members(&self)
        depth -= 1
        close(UInt8(ascii: "}"))
    }

    mutating func string(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }

    mutating func strings(_ key: String, _ values: [String]) {
        self.key(key)
        bytes.append(UInt8(ascii: "["))
        depth += 1
        isFirst = true
        for value in values {
            separate()
            string(value)
        }
        depth -= 1
        close(UInt8(ascii: "]"))
    }

    /// Nothing at all where there is none.
    mutating func integer(_ key: String, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        self.key(key)
        bytes.append(contentsOf: "\(value)".utf8)
    }

    private mutating func key(_ key: String) {
        separate()
        string(key)
        bytes.append(UInt8(ascii: " "))
        bytes.append(UInt8(ascii: ":"))
        bytes.append(UInt8(ascii: " "))
    }

    private mutating func separate() {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        indent()
    }

    private mutating func indent() {
        bytes.append(UInt8(ascii: "\n"))
        for _ in 0..<2 * depth { bytes.append(UInt8(ascii: " ")) }
    }

    private mutating func close(_ bracket: UInt8) {
        if isFirst { bytes.append(UInt8(ascii: "\n")) }
        isFirst = false
        indent()
        bytes.append(bracket)
    }

    /// RFC 8259, section 7.
    private mutating func string(_ value: String) {
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        // At once, and taken back where a byte is found that can't stand so.
        let start = bytes.count
        var value = value
        value.withUTF8 { bytes.append(contentsOf: $0) }
        let isPlain = bytes[start...].allSatisfy {
            $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
        if isPlain { return }
        bytes.removeSubrange(start...)
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x08: bytes.append(contentsOf: "\\b".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0C: bytes.append(contentsOf: "\\f".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case ..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes += [byte >> 4, byte & 15].map { $0 + ($0 < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) }
            default: bytes.append(byte)
            }
        }
    }
}
