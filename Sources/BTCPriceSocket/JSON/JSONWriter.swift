extension JSON {
    package enum Layout {
        /// Without white space.
        case compact
        /// For people: one member or element per line, two spaces per level, and ` : ` between name and value.
        case lines
    }

    /// The value as JSON text, without white space.
    package var text: String {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the value as JSON text, which never contains a NUL.
    package func write(to bytes: inout [UInt8]) {
        var writer = JSONWriter()
        swap(&writer.bytes, &bytes)
        writer.write(self)
        swap(&writer.bytes, &bytes)
    }
}

/// Writes JSON text value by value, without a tree of it. The text never contains a NUL.
///
/// The caller writes one value, and within an object a name before each value.
package struct JSONWriter {
    package fileprivate(set) var bytes: [UInt8] = []
    private let layout: JSON.Layout
    private var depth = 0

    /// - Parameter capacity: The expected length of the text, bytes.
    package init(_ layout: JSON.Layout = .compact, capacity: Int = 0) {
        self.layout = layout
        if capacity > 0 { bytes.reserveCapacity(capacity) }
    }

    package mutating func write(_ value: JSON) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .number(let text): bytes.append(contentsOf: text.utf8)
        case .string(let value): write(value)
        case .array(let elements):
            open("[")
            for element in elements {
                separate()
                write(element)
            }
            close("]")
        case .object(let object):
            self.object { for member in object.members { $0.member(member.name, member.value) } }
        }
    }

    /// Writes an object.
    /// - Parameter members: Writes its members, which have different names.
    package mutating func object(_ members: (inout JSONWriter) -> Void) {
        open("{")
        members(&self)
        close("}")
    }

    /// Writes the name of a field, which needs no escapes.
    mutating func name(ofField name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(contentsOf: (layout == .lines ? "\" : " : "\":").utf8)
    }

    package mutating func member(_ name: String, _ value: JSON) {
        self.name(name)
        write(value)
    }

    /// Writes the name of a member.
    package mutating func name(_ name: String) {
        separate()
        write(name)
        bytes.append(contentsOf: (layout == .lines ? " : " : ":").utf8)
    }

    private mutating func open(_ bracket: Unicode.Scalar) {
        bytes.append(UInt8(ascii: bracket))
        depth += 1
    }

    /// Whether an object or an array was opened, and is still empty.
    private var isEmpty: Bool {
        let last = bytes.last
        return last == UInt8(ascii: "{") || last == UInt8(ascii: "[")
    }

    private mutating func separate() {
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        breakLine()
    }

    private mutating func close(_ bracket: Unicode.Scalar) {
        depth -= 1
        if !isEmpty { breakLine() }
        bytes.append(UInt8(ascii: bracket))
    }

    private mutating func breakLine() {
        guard layout == .lines else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
    }

    private mutating func write(_ string: String) {
        bytes.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { text in
            if text.contains(where: Self.isEscaped) {
                for byte in text { writeEscaped(byte) }
            } else {
                bytes.append(contentsOf: text)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func writeEscaped(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        case 0x0A: bytes.append(contentsOf: "\\n".utf8)
        case 0x0D: bytes.append(contentsOf: "\\r".utf8)
        case 0x09: bytes.append(contentsOf: "\\t".utf8)
        case ..<0x20:
            let hex = String(byte, radix: 16)
            bytes.append(contentsOf: (hex.count == 1 ? "\\u000" : "\\u00").utf8)
            bytes.append(contentsOf: hex.utf8)
        default: bytes.append(byte)
        }
    }

    /// Whether a string must not have this byte unescaped (RFC 8259, section 7).
    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}
