import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct JSONTests {
    private func parse(_ text: String) throws(JSONError) -> JSON {
        try JSON(parsing: Array(text.utf8))
    }

    @Test(arguments: [
        ("null", JSON.null), ("true", .bool(true)), ("false", .bool(false)), ("0", .integer(0)), ("-7", .integer(-7)),
        ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
        ("9223372036854775808", .number("9223372036854775808")), ("75500.99", .number("75500.99")),
        ("1e-08", .number("1e-08")), ("1E+2", .number("1E+2")), ("\"\"", .string("")),
        (#""a\"\\\/\b\f\n\r\tz""#, .string("a\"\\/\u{8}\u{C}\n\r\tz")),
        (#""\u0041\u00e9\ud83d\ude00""#, .string("Aé😀")),
        ("\"Ƀ\"", .string("Ƀ")), ("[]", .array([])), ("[1, [2]]", .array([.integer(1), .array([.integer(2)])])),
        ("{}", .object([:])), (" \t\r\n{ \"a\" : 1 , \"b\" : null } ", .object(["a": .integer(1), "b": .null])),
    ])
    func `valid JSON is read`(text: String, expected: JSON) throws {
        #expect(try parse(text) == expected)
    }

    @Test(arguments: [
        "", " ", "nul", "truex", "TRUE", "01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "NaN", "'a'", "\"a",
        "\"\\x\"",
        "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\u{1}\"", "[1,]", "[1 2]", "[", "]",
        "{\"a\"}",
        "{\"a\":1,}", "{a:1}", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}", "1 2", "{} {}", "\u{FEFF}1", "/*x*/1",
    ])
    func `invalid JSON is refused`(text: String) {
        #expect(throws: JSONError.self) { try parse(text) }
    }

    @Test(arguments: [
        ("", "line 1, column 1: expected a value"),
        ("{\"a\": NaN}", "line 1, column 7: expected a value"),
        ("[\n  1,\n  {\"é\": 2 \"b\": 3}\n]", "line 3, column 11: expected ',' or '}'"),
        ("{\"a\":1,\n\"a\":2}", "line 2, column 1: a name that occurs twice"),
        ("[1,\r\n]", "line 2, column 1: expected a value"),
        ("[\"abc", "line 1, column 6: a string without its end"),
        ("[\"a\tb\"]", "line 1, column 4: a control character in a string"),
    ])
    func `an error names its line and column`(text: String, expected: String) {
        let bytes = Array(text.utf8)
        let error = #expect(throws: JSONError.self) { try JSONValue(parsing: bytes[...]) }
        #expect(error?.description(in: bytes[...]) == expected)
        // The text may be a part of a longer one.
        #expect(error?.description(in: ([0x0A] + bytes)[1...]) == expected)
    }

    @Test func `an error of UTF-8 names the place of the byte`() {
        let bytes = Array("[1, \"é".utf8) + [0x61, 0xFF] + Array("b\"]".utf8)
        let error = #expect(throws: JSONError.self) { try JSONValue(parsing: bytes[...]) }
        #expect(error?.description(in: bytes[...]) == "line 1, column 8: invalid UTF-8")
    }

    @Test(
        arguments: [
            [0x22, 0xC3, 0x22], [0x22, 0xFF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x00],
        ] as [[UInt8]])
    func `invalid UTF-8 is refused`(bytes: [UInt8]) {
        #expect(throws: JSONError.self) { try JSON(parsing: bytes) }
    }

    @Test func `nesting is bounded`() throws {
        let deepest = JSON.deepestNesting
        _ = try parse(String(repeating: "[", count: deepest) + String(repeating: "]", count: deepest))
        #expect(throws: JSONError.self) { try parse(String(repeating: "[", count: 1_000_000)) }
        #expect(throws: JSONError.self) { try parse(String(repeating: "{\"a\":", count: 1_000_000)) }
    }

    @Test func `the number of members is bounded, and so is their time`() {
        let members = (0..<100_000).map { "\"\($0)\":0" }.joined(separator: ",")
        #expect(throws: JSONError.self) { try parse("{\(members)}") }
    }

    /// Any written value is read back unchanged. The seed is in the message of a failure.
    @Test(arguments: 0..<200) func `a written value is read back`(seed: Int) throws {
        var random = RandomJSON(random: SeededGenerator(seed: seed))
        let value = random.value(depth: 0)
        #expect(try parse(value.text) == value, "seed \(seed)")
    }

    @Test(arguments: [2, 16, 17, 18, 100]) func `a name that occurs twice is found among any number, by its bytes`(
        count: Int
    ) throws {
        let names = (1..<count).map { "\"n\($0)\":1" }
        let object = { (last: String) in "{" + (names + ["\(last):2"]).joined(separator: ",") + "}" }
        #expect(try parse(object("\"n\(count)\"")).objectValue?.members.count == count)
        for twice in ["\"n1\"", "\"n\(count - 1)\"", "\"\\u006e1\""] {
            #expect(throws: JSONError.self, "\(twice)") { try parse(object(twice)) }
        }
        // The names look the same, but are different.
        #expect(try parse("{\"\u{E9}\":1,\"e\u{301}\":2}").objectValue?.members.count == 2)
    }

    /// Random bytes never crash the parser, and a parsed value is written and read back unchanged.
    @Test(arguments: 0..<200) func `damaged text is refused or read, and never crashes`(seed: Int) throws {
        var values = RandomJSON(random: SeededGenerator(seed: seed))
        var bytes = Array(values.value(depth: 0).text.utf8)
        var random = SeededGenerator(seed: ~seed)
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        guard let value = try? JSON(parsing: bytes) else { return }
        #expect(try parse(value.text) == value, "seed \(seed)")
    }
}

struct RandomJSON {
    var random: SeededGenerator

    mutating func value(depth: Int) -> JSON {
        switch Int.random(in: 0...(depth > 4 ? 4 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(.random(using: &random))
        case 2: return .integer(.random(in: .min ... .max, using: &random))
        case 3: return .number("\(Int.random(in: 0...999, using: &random)).\(Int.random(in: 0...999, using: &random))")
        case 4: return .string(text())
        case 5: return .array((0..<Int.random(in: 0...4, using: &random)).map { _ in value(depth: depth + 1) })
        default:
            var object = JSONObject()
            for _ in 0..<Int.random(in: 0...4, using: &random) { object[text()] = value(depth: depth + 1) }
            return .object(object)
        }
    }

    private mutating func text() -> String {
        let scalars: [Unicode.Scalar] = ["a", "\"", "\\", "\n", "\u{0}", "\u{1F}", "é", "Ƀ", "😀", "/", " "]
        return String(
            String.UnicodeScalarView(
                (0..<Int.random(in: 0...6, using: &random)).map { _ in
                    scalars[Int.random(in: 0..<scalars.count, using: &random)]
                }))
    }
}
