/// The error in a text that is not a valid interface definition.
package struct InterfaceDefinitionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The line, from 1.
    package let line: Int
    /// The error.
    package let reason: String

    /// `line 3: expected a type`
    package var description: String { "line \(line): \(reason)" }
}

extension InterfaceDefinition {
    /// Reads a definition.
    /// - Throws: ``InterfaceDefinitionError`` for a syntax error, for two members or two fields with the same name, and for a
    ///   type that is not defined.
    package init(parsing text: some StringProtocol) throws(InterfaceDefinitionError) {
        var parser = InterfaceParser(text)
        self = try parser.interface()
        try InterfaceParser.checkNames(of: self)
    }
}

private struct InterfaceParser {
    /// The maximum depth of nested structures: a hostile text must not use up the stack.
    private static let deepest = 64

    private let bytes: [UInt8]
    private var place = 0
    private var line = 1
    private var depth = 0
    /// The lines of the last comment, if nothing else follows it yet.
    private var comment: [String] = []

    init(_ text: some StringProtocol) {
        bytes = Array(text.utf8)
    }

    mutating func interface() throws(InterfaceDefinitionError) -> InterfaceDefinition {
        let documentation = skip()
        try keyword("interface")
        skip()
        let name = try name("an interface's name", Self.isInterfaceName) {
            $0.isLetterOrDigit || $0 == "." || $0 == "-"
        }
        var members: [InterfaceDefinition.Member] = []
        while true {
            let documentation = skip()
            if place == bytes.count { break }
            members.append(try member(documentation))
        }
        if members.isEmpty { throw failure("an interface without members") }
        return InterfaceDefinition(documentation: documentation, name: name, members: members)
    }

    private mutating func member(_ documentation: [String]) throws(InterfaceDefinitionError)
        -> InterfaceDefinition.Member
    {
        let word = word()
        skip()
        let name = try name("a member's name", Self.isMemberName) { $0.isLetterOrDigit }
        skip()
        let kind: InterfaceDefinition.Member.Kind
        switch word {
        case "type": kind = .type(try structureOrEnumeration())
        case "method":
            let parameters = try structure()
            skip()
            try expect("->")
            skip()
            kind = .method(parameters: parameters, reply: try structure())
        case "error": kind = .error(try structure())
        default: throw failure("expected type, method or error, not '\(word)'")
        }
        return InterfaceDefinition.Member(documentation: documentation, name: name, kind: kind)
    }

    private mutating func structure() throws(InterfaceDefinitionError) -> [InterfaceDefinition.Field] {
        switch try structureOrEnumeration() {
        case .structure(let fields): return fields
        default: throw failure("expected fields with types")
        }
    }

    private mutating func structureOrEnumeration() throws(InterfaceDefinitionError) -> InterfaceDefinition.FieldType {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw failure("structures nested deeper than \(Self.deepest)") }
        try expect("(")
        var (fields, cases): ([InterfaceDefinition.Field], [String]) = ([], [])
        var documentation = skip()
        if take(")") { return .structure([]) }
        while true {
            let name = try name("a field's name", Self.isFieldName) { $0.isLetterOrDigit || $0 == "_" }
            skip()
            if take(":") {
                skip()
                fields.append(.init(documentation: documentation, name: name, type: try type()))
            } else {
                cases.append(name)
            }
            guard fields.isEmpty || cases.isEmpty else {
                throw failure("'\(name)': some have a type and some have none")
            }
            skip()
            if take(")") { break }
            try expect(",")
            documentation = skip()
        }
        if let twice = Self.duplicate(fields.map(\.name) + cases) { throw failure("'\(twice)' stands here twice") }
        return cases.isEmpty ? .structure(fields) : .enumeration(cases)
    }

    private mutating func type() throws(InterfaceDefinitionError) -> InterfaceDefinition.FieldType {
        if take("?") {
            if peek() == "?" { throw failure("'?' twice") }
            return .optional(try type())
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw failure("types nested deeper than \(Self.deepest)") }
        if take("[]") { return .array(try type()) }
        if take("[string]") { return .map(try type()) }
        if peek() == "(" { return try structureOrEnumeration() }
        let before = place
        switch word() {
        case "bool": return .bool
        case "int": return .int
        case "float": return .float
        case "string": return .string
        case "object": return .object
        case let name where Self.isMemberName(name): return .named(name)
        default:
            place = before
            throw failure("expected a type")
        }
    }

    // MARK: Names

    static func checkNames(of interface: InterfaceDefinition) throws(InterfaceDefinitionError) {
        if let twice = duplicate(interface.members.map(\.name)) {
            throw InterfaceDefinitionError(line: 1, reason: "'\(twice)' is defined twice")
        }
        let types = Set(
            interface.members.compactMap { member -> String? in if case .type = member.kind { member.name } else { nil }
            })
        for name in interface.members.flatMap(\.kind.names) where !types.contains(name) {
            throw InterfaceDefinitionError(line: 1, reason: "the type '\(name)' is not defined")
        }
    }

    private static func duplicate(_ names: [String]) -> String? {
        var seen: Set<String> = []
        return names.first { !seen.insert($0).inserted }
    }

    private static func isMemberName(_ name: String) -> Bool {
        name.first?.isUppercase == true && name.allSatisfy(\.isLetterOrDigit)
    }

    private static func isFieldName(_ name: String) -> Bool {
        name.first?.isASCIILetter == true && !name.hasSuffix("_") && !name.contains("__")
    }

    private static func isInterfaceName(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 2 && parts[0].first?.isASCIILetter == true
            && parts.allSatisfy { $0.first?.isLetterOrDigit == true && $0.last?.isLetterOrDigit == true }
    }

    // MARK: Text

    private mutating func name(
        _ what: String, _ isName: (String) -> Bool, _ belongs: (Character) -> Bool
    ) throws(InterfaceDefinitionError) -> String {
        let start = place
        while let character = peek(), belongs(character) { place += 1 }
        let name = String(decoding: bytes[start..<place], as: UTF8.self)
        guard isName(name) else { throw failure("expected \(what), not '\(name)'") }
        return name
    }

    private mutating func word() -> String {
        let start = place
        while let character = peek(), character.isLetterOrDigit { place += 1 }
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    private mutating func keyword(_ text: String) throws(InterfaceDefinitionError) {
        let found = word()
        guard found == text else { throw failure("expected '\(text)', not '\(found)'") }
    }

    private mutating func expect(_ text: String) throws(InterfaceDefinitionError) {
        guard take(text) else { throw failure("expected '\(text)'") }
    }

    private mutating func take(_ text: String) -> Bool {
        guard bytes[place...].starts(with: text.utf8) else { return false }
        place += text.utf8.count
        return true
    }

    private func peek() -> Character? {
        place < bytes.count ? Character(Unicode.Scalar(bytes[place])) : nil
    }

    /// Skips white space and comments.
    /// - Returns: The lines of the last comment. An empty line ends a comment.
    @discardableResult private mutating func skip() -> [String] {
        var lines: [String] = []
        var newlines = 0
        while let character = peek() {
            switch character {
            case "\n":
                line += 1
                newlines += 1
                if newlines > 1 { lines = [] }
                place += 1
            case " ", "\t", "\r": place += 1
            case "#":
                let end = bytes[place...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                var text = bytes[(place + 1)..<end]
                // Compared by bytes: a space and a following accent are one character.
                if text.first == UInt8(ascii: " ") { text = text.dropFirst() }
                lines.append(String(decoding: text, as: UTF8.self))
                place = end
                newlines = 0
            default: return lines
            }
        }
        return lines
    }

    private func failure(_ reason: String) -> InterfaceDefinitionError {
        InterfaceDefinitionError(line: line, reason: reason)
    }
}

extension InterfaceDefinition.Member.Kind {
    /// The types that it names.
    fileprivate var names: [String] {
        switch self {
        case .type(let type): type.names
        case .method(let parameters, let reply): (parameters + reply).flatMap(\.type.names)
        case .error(let fields): fields.flatMap(\.type.names)
        }
    }
}

extension InterfaceDefinition.FieldType {
    /// The types that it names.
    fileprivate var names: [String] {
        switch self {
        case .bool, .int, .float, .string, .object, .enumeration: []
        case .named(let name): [name]
        case .structure(let fields): fields.flatMap(\.type.names)
        case .array(let type), .map(let type), .optional(let type): type.names
        }
    }
}

extension Character {
    fileprivate var isASCIILetter: Bool { isASCII && isLetter }
    fileprivate var isLetterOrDigit: Bool { isASCII && (isLetter || isNumber) }
}
