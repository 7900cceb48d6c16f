/// Checks that bytes are JSON, by recursive descent.
struct JSONChecker {
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
            guard names.insert(name, hasEscapes: hasEscapes, bytes) else {
                position = name.lowerBound - 1
                throw error("a name that occurs twice")
            }
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
        var index = start
        var (isASCII, hasEscapes) = (true, false)
        while index < bytes.count {
            let byte = bytes[unchecked: index]
            switch byte {
            case UInt8(ascii: "\""):
                position = start
                if !isASCII { try checkUTF8(bytes.extracting(start..<index)) }
                position = index + 1
                return (start..<index, hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                position = index + 1
                try escape(bytes)
                index = position
            case ..<0x20:
                position = index
                throw error("a control character in a string")
            default:
                if byte >= 0x80 { isASCII = false }
                index += 1
            }
        }
        position = index
        throw error("a string without its end")
    }

    private mutating func checkUTF8(_ bytes: Span<UInt8>) throws(JSONError) {
        do {
            _ = try UTF8Span(validating: bytes)
        } catch {
            position += error.byteOffsets.lowerBound
            throw self.error("invalid UTF-8")
        }
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
