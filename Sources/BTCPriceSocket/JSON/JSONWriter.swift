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
    package func write(to bytes: inout [UInt8], _ layout: Layout = .compact) {
        var writer = JSONWriter(layout: layout)
        swap(&writer.bytes, &bytes)
        writer.write(self)
        swap(&writer.bytes, &bytes)
    }
}

extension JSONObject {
    /// Appends the object as JSON text, which never contains a NUL.
    package func write(to bytes: inout [UInt8], _ layout: JSON.Layout = .compact) {
        JSON.object(self).write(to: &bytes, layout)
    }
}

private struct JSONWriter {
    var bytes: [UInt8] = []
    let layout: JSON.Layout
    var depth = 0

    mutating func write(_ value: JSON) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .number(let text): bytes.append(contentsOf: text.utf8)
        case .string(let value): write(value)
        case .array(let elements):
            open("[")
            for (index, element) in elements.enumerated() {
                separate(index)
                write(element)
            }
            close("]", isEmpty: elements.isEmpty)
        case .object(let object):
            open("{")
            for (index, member) in object.members.enumerated() {
                separate(index)
                write(member.name)
                bytes.append(contentsOf: (layout == .lines ? " : " : ":").utf8)
                write(member.value)
            }
            close("}", isEmpty: object.members.isEmpty)
        }
    }

    private mutating func open(_ bracket: Unicode.Scalar) {
        bytes.append(UInt8(ascii: bracket))
        depth += 1
    }

    private mutating func separate(_ index: Int) {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        breakLine()
    }

    private mutating func close(_ bracket: Unicode.Scalar, isEmpty: Bool) {
        depth -= 1
        if !isEmpty { breakLine() }
        bytes.append(UInt8(ascii: bracket))
    }

    private mutating func breakLine() {
        guard layout == .lines else { return }
        bytes.append(UInt8(ascii: "\n"))
        for _ in 0..<2 * depth { bytes.append(UInt8(ascii: " ")) }
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
