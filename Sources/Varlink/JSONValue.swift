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
        var bytes: [UInt8] = []
        json.write(to: &bytes)
        text = bytes[...]
    }

    private var first: UInt8 { text[text.startIndex] }

    /// Whether it is `null`.
    package var isNull: Bool { first == UInt8(ascii: "n") }

    /// `true` or `false`; `nil` for any other value.
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

    /// The value itself if it is an object; otherwise `nil`.
    package var objectValue: JSONValue? { first == UInt8(ascii: "{") ? self : nil }

    /// The elements of an array; `nil` for any other value.
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
        for member in members where member.name.isString(name) { return member.value }
        return nil
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
        var place = start
        // Checked text has one.
        while bytes[unchecked: place] != UInt8(ascii: "\"") {
            place += bytes[unchecked: place] == UInt8(ascii: "\\") ? 2 : 1
        }
        return place
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
            let text = text
            let bytes = text.span
            var place = position
            // Commas, colons and white space separate values. The last byte is the closing bracket.
            while place < bytes.count - 1, bytes[place].isBetweenValues { place += 1 }
            guard place < bytes.count - 1 else { return nil }
            let start = place
            let isWord = !bytes[start].opensValue
            var depth = 0
            repeat {
                switch bytes[place] {
                case UInt8(ascii: "\""):
                    place = JSONValue.endOfString(bytes, from: place + 1)
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
                default: break
                }
                place += 1
            } while depth > 0 || (isWord && place < bytes.count - 1 && !bytes[place].isBetweenValues)
            position = place
            return JSONValue(checked: text[text.startIndex + start..<text.startIndex + place])
        }
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
    fileprivate var unescaped: [UInt8] {
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
    fileprivate var hexDigit: UInt8? {
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
    /// What is wrong.
    package let reason: String
    /// The position of the error, bytes from the start.
    package let offset: Int

    /// `expected a value at byte 3`
    package var description: String { "\(reason) at byte \(offset)" }
}

/// Checks that bytes are JSON, by recursive descent.
private struct JSONChecker {
    private var position = 0

    /// - Returns: The range of the value.
    mutating func document(_ bytes: Span<UInt8>) throws(JSONError) -> Range<Int> {
        skipWhitespace(bytes)
        let start = position
        try value(bytes, depth: 0)
        let end = position
        skipWhitespace(bytes)
        guard position == bytes.count else { throw error("unexpected text after the value") }
        return start..<end
    }

    private func error(_ reason: String) -> JSONError {
        JSONError(reason: reason, offset: position)
    }

    /// The byte at the position; at the end 0, which JSON text never contains.
    private func current(_ bytes: Span<UInt8>) -> UInt8 { position < bytes.count ? bytes[position] : 0 }

    private mutating func skipWhitespace(_ bytes: Span<UInt8>) {
        while case let byte = current(bytes), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            position += 1
        }
    }

    private mutating func take(_ character: Unicode.Scalar, _ bytes: Span<UInt8>) -> Bool {
        guard current(bytes) == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func value(_ bytes: Span<UInt8>, depth: Int) throws(JSONError) {
        guard depth <= JSON.deepestNesting else { throw error("nested too deep") }
        switch current(bytes) {
        case UInt8(ascii: "{"): try object(bytes, depth: depth)
        case UInt8(ascii: "["): try array(bytes, depth: depth)
        case UInt8(ascii: "\""): _ = try string(bytes)
        case UInt8(ascii: "t"): try word("true", bytes)
        case UInt8(ascii: "f"): try word("false", bytes)
        case UInt8(ascii: "n"): try word("null", bytes)
        default: try number(bytes)
        }
    }

    private mutating func word(_ text: StaticString, _ bytes: Span<UInt8>) throws(JSONError) {
        guard bytes.count - position >= text.utf8CodeUnitCount else { throw error("expected a value") }
        for offset in 0..<text.utf8CodeUnitCount where bytes[position + offset] != text.utf8Start[offset] {
            throw error("expected a value")
        }
        position += text.utf8CodeUnitCount
    }

    private mutating func object(_ bytes: Span<UInt8>, depth: Int) throws(JSONError) {
        position += 1
        var names = NamesOfObject()
        skipWhitespace(bytes)
        if take("}", bytes) { return }
        while true {
            skipWhitespace(bytes)
            guard current(bytes) == UInt8(ascii: "\"") else { throw error("expected a name") }
            guard names.count < JSON.mostMembers else { throw error("too many members") }
            let (name, hasEscapes) = try string(bytes)
            guard names.insert(name, hasEscapes: hasEscapes, bytes) else { throw error("a name that occurs twice") }
            skipWhitespace(bytes)
            guard take(":", bytes) else { throw error("expected ':'") }
            skipWhitespace(bytes)
            try value(bytes, depth: depth + 1)
            skipWhitespace(bytes)
            if take("}", bytes) { return }
            guard take(",", bytes) else { throw error("expected ',' or '}'") }
        }
    }

    private mutating func array(_ bytes: Span<UInt8>, depth: Int) throws(JSONError) {
        position += 1
        skipWhitespace(bytes)
        if take("]", bytes) { return }
        while true {
            skipWhitespace(bytes)
            try value(bytes, depth: depth + 1)
            skipWhitespace(bytes)
            if take("]", bytes) { return }
            guard take(",", bytes) else { throw error("expected ',' or ']'") }
        }
    }

    private mutating func number(_ bytes: Span<UInt8>) throws(JSONError) {
        _ = take("-", bytes)
        if !take("0", bytes) { try digits("expected a value", bytes) }
        if take(".", bytes) { try digits("expected a digit after '.'", bytes) }
        if take("e", bytes) || take("E", bytes) {
            if !take("+", bytes) { _ = take("-", bytes) }
            try digits("expected a digit in the exponent", bytes)
        }
    }

    private mutating func digits(_ reason: String, _ bytes: Span<UInt8>) throws(JSONError) {
        let start = position
        while (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(current(bytes)) { position += 1 }
        guard position > start else { throw error(reason) }
    }

    /// - Returns: The range of the text between the quotation marks.
    private mutating func string(_ bytes: Span<UInt8>) throws(JSONError) -> (Range<Int>, hasEscapes: Bool) {
        let start = position + 1
        var place = start
        var (isASCII, hasEscapes) = (true, false)
        while place < bytes.count {
            let byte = bytes[unchecked: place]
            switch byte {
            case UInt8(ascii: "\""):
                position = place
                if !isASCII { try checkUTF8(bytes.extracting(start..<place)) }
                position += 1
                return (start..<place, hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                position = place + 1
                try escape(bytes)
                place = position
            case ..<0x20:
                position = place
                throw error("a control character in a string")
            default:
                if byte >= 0x80 { isASCII = false }
                place += 1
            }
        }
        position = place
        throw error("a string without its end")
    }

    private func checkUTF8(_ bytes: Span<UInt8>) throws(JSONError) {
        do { _ = try UTF8Span(validating: bytes) } catch { throw self.error("invalid UTF-8") }
    }

    private mutating func escape(_ bytes: Span<UInt8>) throws(JSONError) {
        let byte = current(bytes)
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return
        case UInt8(ascii: "u"):
            let first = try hexUnit(bytes)
            guard UTF16.isSurrogate(first) else { return }
            guard UTF16.isLeadSurrogate(first), take("\\", bytes), take("u", bytes),
                UTF16.isTrailSurrogate(try hexUnit(bytes))
            else { throw error("a lone surrogate") }
        default: throw error("an unknown escape")
        }
    }

    private mutating func hexUnit(_ bytes: Span<UInt8>) throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = current(bytes).hexDigit else { throw error("expected four hexadecimal digits") }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }
}

/// Finds a duplicate name in an object. It compares bytes, since names that only look the same differ (RFC 8259, section 8.3).
private struct NamesOfObject {
    private(set) var count = 0
    /// The ranges of the first names; each new name is compared with all of them.
    private var first = InlineArray<16, Range<Int>>(repeating: 0..<0)
    /// All names, decoded, if there are more than 16 or one has escapes.
    private var all: Set<[UInt8]>?

    /// - Returns: Whether the name is new.
    mutating func insert(_ name: Range<Int>, hasEscapes: Bool, _ bytes: Span<UInt8>) -> Bool {
        defer { count += 1 }
        if all == nil, hasEscapes || count == first.count {
            all = Set((0..<count).map { Self.copy(first[$0], bytes) })
        }
        if all != nil {
            let copy = Self.copy(name, bytes)
            return all?.insert(hasEscapes ? copy[...].unescaped : copy).inserted == true
        }
        for index in 0..<count where Self.areEqual(first[index], name, bytes) { return false }
        first[count] = name
        return true
    }

    private static func copy(_ range: Range<Int>, _ bytes: Span<UInt8>) -> [UInt8] {
        bytes.extracting(range).withUnsafeBufferPointer(Array.init)
    }

    private static func areEqual(_ one: Range<Int>, _ other: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        guard one.count == other.count else { return false }
        for offset in 0..<one.count where bytes[one.lowerBound + offset] != bytes[other.lowerBound + offset] {
            return false
        }
        return true
    }
}

extension JSON {
    /// The maximum nesting of arrays and objects. Limits the stack that a hostile message can use.
    static let deepestNesting = 32
    /// The maximum number of members of an object. Limits the time of a lookup.
    static let mostMembers = 256

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
