/// Why a text is not JSON, and where.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    public let reason: String
    /// Bytes before the place where it went wrong.
    public let offset: Int

    /// `expected a value at byte 3`
    public var description: String { "\(reason) at byte \(offset)" }
}

extension JSON {
    /// How deep arrays and objects may nest. Bounds the stack that a hostile message can use.
    public static let deepestNesting = 32
    /// How many members an object may have: looking for a name takes as long as there are members.
    public static let mostMembers = 256

    /// Reads one JSON value that fills `bytes`, white space apart.
    /// - Parameter bytes: UTF-8.
    /// - Throws: ``JSONError`` for whatever RFC 8259 does not allow, for invalid UTF-8, for a name that occurs twice in an
    ///   object, and past ``deepestNesting`` and ``mostMembers``.
    public init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        let contiguous = ContiguousArray(bytes)
        var parser = JSONParser(bytes: contiguous)
        self = try parser.document()
    }
}

/// A recursive-descent parser over bytes.
private struct JSONParser {
    private let bytes: ContiguousArray<UInt8>
    private var position = 0

    init(bytes: ContiguousArray<UInt8>) {
        self.bytes = bytes
    }

    mutating func document() throws(JSONError) -> JSON {
        let value = try value(depth: 0)
        skipWhitespace()
        guard position == bytes.count else { throw error("unexpected text after the value") }
        return value
    }

    private func error(_ reason: String) -> JSONError {
        JSONError(reason: reason, offset: position)
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipWhitespace() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard current == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSON {
        guard depth <= JSON.deepestNesting else { throw error("nested too deep") }
        skipWhitespace()
        guard let byte = current else { throw error("expected a value") }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ text: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        let end = position + text.utf8CodeUnitCount
        let matches =
            end <= bytes.count
            && text.withUTF8Buffer { expected in bytes[position..<end].elementsEqual(expected) }
        guard matches else { throw error("expected a value") }
        position = end
        return value
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        position += 1
        var object = JSONObject()
        var names = NamesOfObject()
        skipWhitespace()
        if take("}") { return object }
        while true {
            skipWhitespace()
            guard current == UInt8(ascii: "\"") else { throw error("expected a name") }
            let name = try string()
            skipWhitespace()
            guard take(":") else { throw error("expected ':'") }
            let value = try value(depth: depth + 1)
            guard object.members.count < JSON.mostMembers else { throw error("too many members") }
            guard names.isNew(name, in: object) else { throw error("a name that occurs twice") }
            object.append(name, value)
            skipWhitespace()
            if take("}") { return object }
            guard take(",") else { throw error("expected ',' or '}'") }
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSON] {
        position += 1
        var elements: [JSON] = []
        skipWhitespace()
        if take("]") { return elements }
        while true {
            elements.append(try value(depth: depth + 1))
            skipWhitespace()
            if take("]") { return elements }
            guard take(",") else { throw error("expected ',' or ']'") }
        }
    }

    private mutating func number() throws(JSONError) -> JSON {
        let start = position
        var isInteger = true
        _ = take("-")
        if !take("0") { try digits("expected a value") }
        if take(".") {
            isInteger = false
            try digits("expected a digit after '.'")
        }
        if take("e") || take("E") {
            isInteger = false
            if !take("+") { _ = take("-") }
            try digits("expected a digit in the exponent")
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .integer(value) }
        return .number(text)
    }

    private mutating func digits(_ reason: String) throws(JSONError) {
        let start = position
        while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw error(reason) }
    }

    private mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        while let byte = current, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
        var text = Array(bytes[start..<position])
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else { throw error("invalid UTF-8") }
                position += 1
                return string
            case UInt8(ascii: "\\"):
                position += 1
                text.append(contentsOf: try escape())
            case ..<0x20:
                throw error("a control character in a string")
            default:
                text.append(byte)
                position += 1
            }
        }
        throw error("a string without its end")
    }

    private mutating func escape() throws(JSONError) -> [UInt8] {
        guard let byte = current else { throw error("a string without its end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"): return Array(String(try escapedScalar()).utf8)
        default: throw error("an unknown escape")
        }
    }

    private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
        let first = try hexUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(UInt16(first)), take("\\"), take("u") else { throw error("a lone surrogate") }
        let second = try hexUnit()
        guard UTF16.isTrailSurrogate(UInt16(second)) else { throw error("a lone surrogate") }
        let value = 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
        guard let scalar = Unicode.Scalar(value) else { throw error("a lone surrogate") }
        return scalar
    }

    private mutating func hexUnit() throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw error("expected four hexadecimal digits")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }
}

/// Tells a name that occurs twice: by its bytes, since names that only look the same are two (RFC 8259, section 8.3), and since putting
/// in order what looks the same takes long.
private struct NamesOfObject {
    /// Up to so many each is compared with each; beyond that it would take too long.
    private static let few = 16

    private var known: Set<[UInt8]> = []

    mutating func isNew(_ name: String, in object: JSONObject) -> Bool {
        guard object.members.count >= Self.few else {
            return !object.members.contains { $0.name.utf8.elementsEqual(name.utf8) }
        }
        if known.isEmpty { known = Set(object.members.map { Array($0.name.utf8) }) }
        return known.insert(Array(name.utf8)).inserted
    }
}
