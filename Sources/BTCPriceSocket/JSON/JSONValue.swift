import Glibc

/// A parsed JSON value (RFC 8259), kept as text.
///
/// Parsing checks the whole text once and builds nothing: a value is a range of the text and is decoded on use. A lookup scans the
/// members from the first, which is fast for the small objects of this project.
///
/// Stricter than RFC 8259: a duplicate name in an object is an error, as in Varlink's specification.
package struct JSONValue: Sendable, Hashable {
    /// The text of this value, without surrounding white space.
    package let text: ArraySlice<UInt8>

    /// A value within checked text.
    fileprivate init(checked text: ArraySlice<UInt8>) {
        self.text = text
    }

    /// Parses one JSON value that fills `bytes`, except for surrounding white space.
    /// - Parameter bytes: UTF-8.
    /// - Throws: ``JSONError`` for text that RFC 8259 does not allow, invalid UTF-8, a duplicate name in an object, and text that
    ///   exceeds ``JSON/deepestNesting`` or ``JSON/mostMembers``.
    package init(parsing bytes: ArraySlice<UInt8>) throws(JSONError) {
        var checker = JSONChecker()
        let range = try checker.document(bytes.span)
        text = bytes[bytes.startIndex + range.lowerBound..<bytes.startIndex + range.upperBound]
    }

    /// Encodes `json` as a text of its own.
    package init(_ json: JSON) {
        self.init { $0.write(json) }
    }

    /// - Parameter write: Writes the value.
    package init(_ write: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        write(&writer)
        text = writer.bytes[...]
    }

    private var first: UInt8 { text[text.startIndex] }

    package var isNull: Bool { first == UInt8(ascii: "n") }

    package var boolValue: Bool? {
        switch first {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// The number as written; `nil` for any other value.
    package var number: ArraySlice<UInt8>? {
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): text
        default: nil
        }
    }

    /// A number without fraction and exponent that fits 64 bits; `nil` for any other value.
    package var integerValue: Int64? {
        guard var digits = number else { return nil }
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative { digits.removeFirst() }
        var value: Int64 = 0
        for digit in digits {
            let step = Int64(digit) - Int64(UInt8(ascii: "0"))
            guard (0...9).contains(step) else { return nil }
            let (product, isOver) = value.multipliedReportingOverflow(by: 10)
            let (sum, isBeyond) = product.addingReportingOverflow(isNegative ? -step : step)
            if isOver || isBeyond { return nil }
            value = sum
        }
        return value
    }

    /// The text of a string between its quotation marks, with escapes as written; `nil` for any other value.
    package var rawString: ArraySlice<UInt8>? {
        first == UInt8(ascii: "\"") ? text[text.startIndex + 1..<text.endIndex - 1] : nil
    }

    /// The decoded string; `nil` for any other value.
    package var stringValue: String? {
        guard let raw = rawString else { return nil }
        guard raw.contains(UInt8(ascii: "\\")) else { return String(decoding: raw, as: UTF8.self) }
        return String(decoding: raw.unescaped, as: UTF8.self)
    }

    /// Whether it is this string, compared without a copy unless it has escapes.
    package func isString(_ other: StaticString) -> Bool {
        guard let raw = rawString else { return false }
        if raw.isText(other) { return true }
        return raw.contains(UInt8(ascii: "\\")) && raw.unescaped[...].isText(other)
    }

    /// Whether it is this string. A literal is compared faster as a `StaticString`.
    package func isString(equalTo other: String) -> Bool {
        guard let raw = rawString else { return false }
        if raw.elementsEqual(other.utf8) { return true }
        return raw.contains(UInt8(ascii: "\\")) && raw.unescaped.elementsEqual(other.utf8)
    }

    /// The value itself if it is an object; otherwise `nil`.
    package var objectValue: JSONValue? { first == UInt8(ascii: "{") ? self : nil }

    package var isArray: Bool { first == UInt8(ascii: "[") }

    /// An element of an array; `nil` if there is none, and for any other value.
    package func element(_ index: Int) -> JSONValue? {
        guard isArray, index >= 0 else { return nil }
        var walk = Walk(self)
        for _ in 0..<index where walk.next() == nil { return nil }
        return walk.next()
    }

    package var arrayValue: [JSONValue]? {
        guard first == UInt8(ascii: "[") else { return nil }
        var elements: [JSONValue] = []
        var walk = Walk(self)
        while let element = walk.next() { elements.append(element) }
        return elements
    }

    /// The members of an object, in order; empty for any other value.
    package var members: Members { Members(walk: Walk(self), isObject: first == UInt8(ascii: "{")) }

    /// The value of a member of an object; `nil` if there is none.
    package subscript(name: StaticString) -> JSONValue? {
        guard first == UInt8(ascii: "{") else { return nil }
        // Only the value that is found is made.
        let bytes = text.span
        var position = 1
        while let member = Self.value(in: bytes, from: &position), let value = Self.value(in: bytes, from: &position) {
            if isString(name, at: member, in: bytes) { return part(value) }
        }
        return nil
    }

    /// The value at a range of the text, counted from its start.
    private func part(_ range: Range<Int>) -> JSONValue {
        JSONValue(checked: text[text.startIndex + range.lowerBound..<text.startIndex + range.upperBound])
    }

    /// Whether the string at a range is this one.
    private func isString(_ name: StaticString, at range: Range<Int>, in bytes: Span<UInt8>) -> Bool {
        let count = range.count - 2
        // Escapes make it longer.
        guard count >= name.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress.map({ $0 + range.lowerBound + 1 }) else { return false }
            if count == name.utf8CodeUnitCount { return memcmp(start, name.utf8Start, count) == 0 }
            return memchr(start, 0x5C, count) != nil && part(range).isString(name)
        }
    }

    /// Iterates over the members of an object.
    package struct Members: Sequence, IteratorProtocol {
        fileprivate var walk: Walk
        fileprivate let isObject: Bool

        package var isEmpty: Bool {
            var copy = self
            return copy.next() == nil
        }

        package mutating func next() -> (name: JSONValue, value: JSONValue)? {
            guard isObject, let name = walk.next(), let value = walk.next() else { return nil }
            return (name, value)
        }
    }

    /// The position of the quotation mark that ends a string in checked text.
    private static func endOfString(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var index = start
        // In checked text, every string has an end.
        while bytes[unchecked: index] != UInt8(ascii: "\"") {
            index += bytes[unchecked: index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index
    }

    /// Iterates over the values in an array or object of checked text, names included.
    fileprivate struct Walk {
        private let text: ArraySlice<UInt8>
        /// Bytes already scanned.
        private var position = 1

        init(_ container: JSONValue) {
            text = container.text
        }

        mutating func next() -> JSONValue? {
            let container = JSONValue(checked: text)
            return JSONValue.value(in: container.text.span, from: &position).map(container.part)
        }
    }

    /// The next value in checked text of an array or object, names included; `nil` after the last one.
    /// - Parameter position: Where to look; then its end.
    private static func value(in bytes: Span<UInt8>, from position: inout Int) -> Range<Int>? {
        var index = position
        // Commas, colons and white space separate values. The last byte is the closing bracket.
        while index < bytes.count - 1, bytes[index].isBetweenValues { index += 1 }
        guard index < bytes.count - 1 else { return nil }
        let start = index
        let isWord = !bytes[start].opensValue
        var depth = 0
        repeat {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(bytes, from: index + 1)
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
            index += 1
        } while depth > 0 || (isWord && index < bytes.count - 1 && !bytes[index].isBetweenValues)
        position = index
        return start..<index
    }
}

extension UInt8 {
    /// Whether a string, object or array begins with it.
    fileprivate var opensValue: Bool {
        switch self {
        case UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["): true
        default: false
        }
    }

    fileprivate var isBetweenValues: Bool {
        switch self {
        case 0x20, 0x0A, 0x0D, 0x09, UInt8(ascii: ","), UInt8(ascii: ":"): true
        default: false
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func isText(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        return withUnsafeBytes { bytes in
            bytes.baseAddress.map { memcmp($0, text.utf8Start, bytes.count) == 0 } ?? true
        }
    }

    /// The bytes of a checked string with its escapes decoded.
    var unescaped: [UInt8] {
        var bytes: [UInt8] = []
        var rest = self
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                var unit = rest.takeHexUnit()
                if (0xD800..<0xDC00).contains(unit) {
                    rest = rest.dropFirst(2)
                    unit = 0x10000 + (unit - 0xD800) << 10 + (rest.takeHexUnit() - 0xDC00)
                }
                bytes.append(contentsOf: String(Unicode.Scalar(unit) ?? "\u{FFFD}").utf8)
            default: bytes.append(escape)
            }
        }
        return bytes
    }

    private mutating func takeHexUnit() -> UInt32 {
        defer { self = dropFirst(4) }
        return prefix(4).reduce(0) { $0 << 4 | UInt32($1.hexDigit ?? 0) }
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit; `nil` for any other byte.
    var hexDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Why a text is not JSON, and where.
package struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    package let reason: String
    /// The position of the error, bytes from the start.
    package let offset: Int

    /// `expected a value at byte 3`
    package var description: String { "\(reason) at byte \(offset)" }

    /// `line 1, column 4: expected a value`
    /// - Parameter text: The text that was parsed.
    package func description(in text: ArraySlice<UInt8>) -> String {
        let before = text.prefix(offset)
        let line = before.lastIndex(of: UInt8(ascii: "\n")).map { before[($0 + 1)...] } ?? before
        // A scalar has one byte that does not continue another one.
        let column = line.count { $0 & 0xC0 != 0x80 } + 1
        return "line \(before.count { $0 == UInt8(ascii: "\n") } + 1), column \(column): \(reason)"
    }
}

extension JSON {
    /// The maximum nesting of arrays and objects. Limits the stack that a hostile message can use.
    static let deepestNesting = 32
    /// The maximum number of members of an object. Limits the time of a lookup.
    static let mostMembers = 4096

    /// Converts a parsed value to one to write.
    package init(_ value: JSONValue) {
        if let bool = value.boolValue {
            self = .bool(bool)
        } else if let integer = value.integerValue {
            self = .integer(integer)
        } else if let number = value.number {
            self = .number(String(decoding: number, as: UTF8.self))
        } else if let string = value.stringValue {
            self = .string(string)
        } else if let elements = value.arrayValue {
            self = .array(elements.map(JSON.init))
        } else if value.objectValue != nil {
            var object = JSONObject()
            for member in value.members { object.append(member.name.stringValue ?? "", JSON(member.value)) }
            self = .object(object)
        } else {
            self = .null
        }
    }
}
