/// Reads a text in TOML 1.0 (toml.io/en/v1.0.0).
struct TOMLReader {
    /// Why a text is not valid, and where. Lines and columns count from 1, columns in scalars.
    struct Failure: Error, Equatable {
        let line: Int
        let column: Int
        let problem: String
    }

    private enum Node {
        case value(RawValue, line: Int)
        case table(Table)
        /// An array of tables. Keys are added to the last one.
        case tables([Table])
    }

    private final class Table {
        enum Kind {
            /// Made by the header of a table in it, and not defined yet.
            case implied
            case defined
            /// Made by a dotted key. Only dotted keys add to it.
            case dotted
            /// Nothing is added to it.
            case inline
        }

        var kind: Kind
        var line: Int
        let depth: Int
        var members: [String: Node] = [:]

        init(_ kind: Kind, line: Int, depth: Int) {
            (self.kind, self.line, self.depth) = (kind, line, depth)
        }
    }

    /// How deep tables and arrays may be nested. No setting needs more than 4.
    private static let deepest = 64

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var lineStart = 0
    private let root = Table(.defined, line: 1, depth: 0)

    /// The values of a text, in the order of their lines, those of one line in the order of their names. An empty table and an array of
    /// tables are values, too.
    static func leaves(of text: String) throws(Failure) -> [ConfigurationFile.Entry] {
        var reader = TOMLReader(bytes: Array(text.utf8))
        try reader.readDocument()
        return leaves(of: reader.root, []).enumerated()
            .sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }.map(\.element)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private static func leaves(of table: Table, _ names: [String]) -> [ConfigurationFile.Entry] {
        table.members.sorted { $0.key < $1.key }.flatMap { name, node -> [ConfigurationFile.Entry] in
            let names = names + [name]
            switch node {
            case .value(let value, let line): return [.init(names: names, value: value, line: line)]
            case .table(let table) where table.members.isEmpty:
                return [.init(names: names, value: .other("table"), line: table.line)]
            case .table(let table): return leaves(of: table, names)
            case .tables(let tables):
                return [.init(names: names, value: .other("array of tables"), line: tables[0].line)]
            }
        }
    }

    // MARK: - Characters

    /// The next byte; 0 at the end.
    private var next: UInt8 { position < bytes.count ? bytes[position] : 0 }

    private func starts(with text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    private mutating func take(_ text: String) -> Bool {
        guard starts(with: text) else { return false }
        position += text.utf8.count
        return true
    }

    private mutating func skipBlanks() {
        while next == UInt8(ascii: " ") || next == UInt8(ascii: "\t") { position += 1 }
    }

    /// Takes the end of a line.
    private mutating func takeLineEnd() -> Bool {
        guard take("\n") || take("\r\n") else { return false }
        (line, lineStart) = (line + 1, position)
        return true
    }

    /// Skips blanks, line ends and comments.
    private mutating func skipLines() throws(Failure) {
        repeat {
            skipBlanks()
            try skipComment()
        } while takeLineEnd()
    }

    private mutating func skipComment() throws(Failure) {
        guard take("#") else { return }
        while position < bytes.count, next != UInt8(ascii: "\n"), !starts(with: "\r\n") { _ = try character() }
    }

    /// The next byte of a string or a comment.
    private mutating func character() throws(Failure) -> UInt8 {
        guard position < bytes.count, next >= 0x20 || next == UInt8(ascii: "\t"), next != 0x7F else {
            let isEnd = position == bytes.count || next == UInt8(ascii: "\n") || starts(with: "\r\n")
            throw failure(isEnd ? "a text without its end" : "a control character")
        }
        position += 1
        return bytes[position - 1]
    }

    /// - Parameter index: In the present line; `nil` for ``position``.
    private func failure(_ problem: String, at index: Int? = nil) -> Failure {
        // The bytes of a scalar after its first one do not count.
        let column = bytes[lineStart..<min(index ?? position, bytes.count)].count { $0 & 0xC0 != 0x80 } + 1
        return Failure(line: line, column: column, problem: problem)
    }

    // MARK: - Lines

    private mutating func readDocument() throws(Failure) {
        // A byte order mark.
        _ = take("\u{FEFF}")
        var table = root
        while true {
            try skipLines()
            guard position < bytes.count else { return }
            if next == UInt8(ascii: "[") { table = try header() } else { try readPair(into: table) }
            skipBlanks()
            try skipComment()
            guard position == bytes.count || takeLineEnd() else { throw failure("more after the end of a value") }
        }
    }

    private mutating func header() throws(Failure) -> Table {
        let line = line
        let isArray = take("[[")
        if !isArray { position += 1 }
        skipBlanks()
        if next == UInt8(ascii: "]") { throw failure("a table without a name") }
        let (start, names) = (position, try key())
        guard take(isArray ? "]]" : "]") else { throw failure("a header without its closing bracket") }
        var table = root
        for name in names.dropLast() {
            switch table.members[name] {
            case nil: table = try add(.implied, name, to: table, line)
            case .table(let inner) where inner.kind != .inline: table = inner
            case .tables(let tables): table = tables[tables.count - 1]
            default: throw failure("'\(name)' is defined already", at: start)
            }
        }
        let name = names[names.count - 1]
        switch table.members[name] {
        case nil where !isArray: return try add(.defined, name, to: table, line)
        case .table(let known) where !isArray && known.kind == .implied:
            (known.kind, known.line) = (.defined, line)
            return known
        case .table(let known) where !isArray:
            throw failure(
                "the table [\(names.joined(separator: "."))] begins in line \(known.line): write all of its keys there")
        case nil, .tables:
            guard isArray else { throw failure("'\(name)' is defined already", at: start) }
            var tables: [Table] = []
            if case .tables(let known) = table.members[name] { tables = known }
            tables.append(try add(.defined, name, to: table, line))
            table.members[name] = .tables(tables)
            return tables[tables.count - 1]
        default: throw failure("'\(name)' is defined already", at: start)
        }
    }

    private func add(_ kind: Table.Kind, _ name: String, to table: Table, _ line: Int) throws(Failure) -> Table {
        guard table.depth < Self.deepest else { throw failure("it is nested too deep") }
        let new = Table(kind, line: line, depth: table.depth + 1)
        table.members[name] = .table(new)
        return new
    }

    /// Reads a key and its value.
    private mutating func readPair(into table: Table) throws(Failure) {
        let (line, start, names) = (line, position, try key())
        guard take("=") else { throw failure("a key without = and a value") }
        var table = table
        for name in names.dropLast() {
            switch table.members[name] {
            case nil: table = try add(.dotted, name, to: table, line)
            case .table(let inner) where inner.kind == .dotted || inner.kind == .implied: table = inner
            default: throw failure("'\(name)' is defined already", at: start)
            }
        }
        let name = names[names.count - 1]
        guard table.members[name] == nil else { throw failure("'\(name)' is defined already", at: start) }
        skipBlanks()
        let node = try node(at: table.depth + 1, line)
        // The header of a table with a value may no longer follow.
        if case .value = node, table.kind == .implied { table.kind = .dotted }
        table.members[name] = node
    }

    private mutating func key() throws(Failure) -> [String] {
        var names: [String] = []
        repeat {
            skipBlanks()
            switch next {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): names.append(try string(isKey: true))
            default:
                let start = position
                while next.isInBareKey { position += 1 }
                guard position > start else { throw failure("no key where one is expected") }
                names.append(String(decoding: bytes[start..<position], as: UTF8.self))
            }
            skipBlanks()
        } while take(".")
        return names
    }

    // MARK: - Values

    private mutating func node(at depth: Int, _ line: Int) throws(Failure) -> Node {
        switch next {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .value(.text(try string(isKey: false)), line: line)
        case UInt8(ascii: "["): return .value(try array(at: depth), line: line)
        case UInt8(ascii: "{"): return .table(try inlineTable(at: depth, line))
        default: return .value(try bareValue(), line: line)
        }
    }

    private mutating func array(at depth: Int) throws(Failure) -> RawValue {
        guard depth < Self.deepest else { throw failure("it is nested too deep") }
        position += 1
        var (texts, count): ([String], Int) = ([], 0)
        while true {
            try skipLines()
            if take("]") { break }
            if case .value(.text(let text), _) = try node(at: depth + 1, line) { texts.append(text) }
            count += 1
            try skipLines()
            guard next == UInt8(ascii: "]") || take(",") else { throw failure("a list without its comma or end") }
        }
        return texts.count == count ? .list(texts) : .other("list of other than strings")
    }

    private mutating func inlineTable(at depth: Int, _ line: Int) throws(Failure) -> Table {
        guard depth < Self.deepest else { throw failure("it is nested too deep") }
        let table = Table(.inline, line: line, depth: depth)
        position += 1
        skipBlanks()
        if take("}") { return table }
        repeat {
            try readPair(into: table)
            skipBlanks()
        } while take(",")
        guard take("}") else { throw failure("a table in { } without its comma or end, which are on the same line") }
        return table
    }

    private mutating func string(isKey: Bool) throws(Failure) -> String {
        let quote = next
        let mark = String(UnicodeScalar(quote))
        let isMultiline = !isKey && take(mark + mark + mark)
        if isMultiline { _ = takeLineEnd() } else { position += 1 }
        let end = isMultiline ? mark + mark + mark : mark
        var text: [UInt8] = []
        while !take(end) {
            if isMultiline, takeLineEnd() {
                text.append(UInt8(ascii: "\n"))
                continue
            }
            let byte = try character()
            if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
                text += try escape(isMultiline)
            } else {
                text.append(byte)
            }
        }
        // One or two quotation marks may come before the end of a string of several lines.
        for _ in 0..<2 where isMultiline && take(mark) { text.append(quote) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads what follows a backslash.
    private mutating func escape(_ isMultiline: Bool) throws(Failure) -> [UInt8] {
        let start = position
        if isMultiline {
            skipBlanks()
            if takeLineEnd() {
                repeat { skipBlanks() } while takeLineEnd()
                return []
            }
            position = start
        }
        let byte = try character()
        switch byte {
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return [byte]
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            let length = byte == UInt8(ascii: "u") ? 4 : 8
            let digits = bytes[position...].prefix(length)
            guard digits.count == length, digits.allSatisfy({ $0.hexValue != nil }),
                let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16), let scalar = UnicodeScalar(code)
            else { break }
            // No setting can have one: C's texts end there.
            guard scalar != "\0" else { throw failure("a NUL character") }
            position += digits.count
            return Array(String(scalar).utf8)
        default: break
        }
        position = start - 1
        throw failure("an escape that does not exist")
    }

    private mutating func bareValue() throws(Failure) -> RawValue {
        var word = bytes[position...].prefix(while: \.isInBareValue)
        // A blank may be between a date and a time.
        let rest = bytes[word.endIndex...]
        if TOMLTime(word) == .date, rest.first == UInt8(ascii: " "), rest.dropFirst().first?.isDigit == true {
            word = bytes[position..<rest.dropFirst().prefix(while: \.isInBareValue).endIndex]
        }
        guard let value = Self.value(of: word) else {
            throw failure(
                word.isEmpty
                    ? "no value where one is expected"
                    : "a value that is not quoted, and neither a number nor true or false")
        }
        position = word.endIndex
        return value
    }

    private static func value(of word: ArraySlice<UInt8>) -> RawValue? {
        let text = String(decoding: word, as: UTF8.self)
        if text == "true" || text == "false" { return .flag(text == "true") }
        let isSigned = text.hasPrefix("+") || text.hasPrefix("-")
        let digits = isSigned ? word.dropFirst() : word
        if !isSigned, let radix = ["0x": 16, "0o": 8, "0b": 2][text.prefix(2)] {
            return plain(word.dropFirst(2), radix).flatMap { Int($0, radix: radix) }.map { .integer($0) }
        }
        if let number = plain(digits, 10) {
            guard number == "0" || !number.hasPrefix("0") else { return nil }
            return Int((text.hasPrefix("-") ? "-" : "") + number).map { .integer($0) }
        }
        if ["inf", "nan"].contains(String(decoding: digits, as: UTF8.self)) || isFloat(digits) {
            return .other("floating-point number")
        }
        return TOMLTime(word).map { .other($0.rawValue) }
    }

    private static func isFloat(_ word: ArraySlice<UInt8>) -> Bool {
        let parts = word.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 | 0x20 == UInt8(ascii: "e") }
        let numbers = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard numbers.count + parts.count > 2, numbers.count <= 2, let whole = plain(numbers[0], 10),
            whole == "0" || !whole.hasPrefix("0"), numbers.dropFirst().allSatisfy({ plain($0, 10) != nil })
        else { return false }
        guard let exponent = parts.dropFirst().first else { return true }
        let isSigned = exponent.first == UInt8(ascii: "+") || exponent.first == UInt8(ascii: "-")
        return plain(isSigned ? exponent.dropFirst() : exponent, 10) != nil
    }

    /// Digits without the underscores between them; `nil` if they are no number.
    private static func plain(_ word: ArraySlice<UInt8>, _ radix: Int) -> String? {
        let parts = word.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        let isNumber = parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy { $0.hexValue.map { $0 < radix } ?? false }
        }
        return isNumber ? parts.map { String(decoding: $0, as: UTF8.self) }.joined() : nil
    }
}

/// The form of a date or a time (RFC 3339, as TOML 1.0 limits it).
private enum TOMLTime: String {
    case date, time
    case dateTime = "date-time"

    init?(_ word: ArraySlice<UInt8>) {
        var rest = word
        let date = Self.take("0000-00-00", from: &rest)
        if let date {
            let isLeap = date[0] % 4 == 0 && (date[0] % 100 != 0 || date[0] % 400 == 0)
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            guard (1...12).contains(date[1]), (1...lengths[date[1] - 1]).contains(date[2]) else { return nil }
            guard let separator = rest.popFirst() else {
                self = .date
                return
            }
            guard separator | 0x20 == UInt8(ascii: "t") || separator == UInt8(ascii: " ") else { return nil }
        }
        guard let time = Self.take("00:00:00", from: &rest), time[0] < 24, time[1] < 60, time[2] <= 60 else {
            return nil
        }
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: \.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        }
        self = date == nil ? .time : .dateTime
        guard date != nil, let zone = rest.popFirst() else {
            if rest.isEmpty { return } else { return nil }
        }
        if zone | 0x20 != UInt8(ascii: "z") {
            guard zone == UInt8(ascii: "+") || zone == UInt8(ascii: "-"),
                let offset = Self.take("00:00", from: &rest), offset[0] < 24, offset[1] < 60
            else { return nil }
        }
        guard rest.isEmpty else { return nil }
    }

    /// Takes a text of this form, in which a 0 is any digit.
    /// - Returns: The numbers in it.
    private static func take(_ form: String, from rest: inout ArraySlice<UInt8>) -> [Int]? {
        let text = rest.prefix(form.utf8.count)
        let isOfForm = zip(text, form.utf8).allSatisfy { $1 == UInt8(ascii: "0") ? $0.isDigit : $0 == $1 }
        guard text.count == form.utf8.count, isOfForm else { return nil }
        rest = rest[text.endIndex...]
        return text.split { !$0.isDigit }.map { $0.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }

    /// Whether it may be in a key without quotation marks.
    var isInBareKey: Bool { isDigit || isLetter || self == UInt8(ascii: "_") || self == UInt8(ascii: "-") }

    fileprivate var isInBareValue: Bool {
        isInBareKey || self == UInt8(ascii: "+") || self == UInt8(ascii: ".") || self == UInt8(ascii: ":")
    }

    fileprivate var hexValue: Int? { Character(UnicodeScalar(self)).hexDigitValue }
}
