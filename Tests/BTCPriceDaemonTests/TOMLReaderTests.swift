import TestSupport
import Testing

@testable import Configuration

/// The sections of the specification (toml.io/en/v1.0.0), in its order, and texts that are not valid.
@Suite struct TOMLReaderTests {
    /// The values of a text, each in a line `names = value`, without the quotation marks of texts; or the place of its error.
    private func read(_ text: String) -> String {
        do throws(TOMLReader.Failure) {
            return try TOMLReader.leaves(of: text).map { leaf in
                let value = if case .text(let text) = leaf.value { text } else { "\(leaf.value)" }
                return "\(leaf.names.joined(separator: "|")) = \(value)"
            }.joined(separator: "; ")
        } catch {
            return "\(error.line):\(error.column) \(error.problem)"
        }
    }

    @Test(arguments: [
        ("", ""), ("# a comment\na = 1 # b\r\n\n\t# c", "a = 1"), ("\u{FEFF}a = 1", "a = 1"),
        // Keys.
        ("b-a_r1 = 1\n1234 = 2\n\"a.b c\" = 3\n'q\"' = 4\n\"\" = 5", "b-a_r1 = 1; 1234 = 2; a.b c = 3; q\" = 4;  = 5"),
        ("a.b . \"c.d\" = 1\na . e = 2", "a|b|c.d = 1; a|e = 2"), ("3.14 = 1", "3|14 = 1"),
        ("a.b = 1\nc = 2\na.d = 3", "a|b = 1; c = 2; a|d = 3"),
        // Strings.
        (#"a = "\b\t\n\f\r\"\\ \u00E9\U0001F600 é""#, "a = \u{8}\t\n\u{C}\r\"\\ é😀 é"),
        ("a = ''\nb = \"\"", "a = ; b = "),
        ("a = \"\"\"\none\r\ntwo \"\" \\\n  \n  three\"\"\"\"\"", "a = one\ntwo \"\" three\"\""),
        ("a = 'C:\\x'", "a = C:\\x"),
        ("a = '''\nno \\ escape''\n'''", "a = no \\ escape''\n"), ("a = \"\"\"\"\"\"", "a = "),
        ("a = \"\t\"", "a = \t"),
        // Integers, floats, booleans, dates.
        ("a = +99\nb = -0\nc = 1_000", "a = 99; b = 0; c = 1000"),
        ("a = 0xDEAD_beef\nb = 0o17\nc = 0b11", "a = 3735928559; b = 15; c = 3"),
        ("a = 9223372036854775807\nb = -9223372036854775808", "a = 9223372036854775807; b = -9223372036854775808"),
        (
            "a = [1.5, -0.0, 5e+22, 1e06, -2E-2, 6.626e-34, 1_0.0_1, inf, -inf, +nan]",
            "a = a list of other than strings"
        ),
        ("a = -1.5\nb = nan", "a = a floating-point number; b = a floating-point number"),
        ("a = true\nb = false", "a = true; b = false"),
        ("a = 1979-05-27\nb = 07:32:00.999", "a = a date; b = a time"),
        ("a = 1979-05-27T07:32:00Z\nb = 2024-02-29 07:32:00.5-08:00", "a = a date-time; b = a date-time"),
        // Arrays.
        (
            "a = [ 'x', \"y\" ]\nb = []\nc = [ # d\n'x' # e\n,\n'y',\n]",
            "a = [\"x\", \"y\"]; b = []; c = [\"x\", \"y\"]"
        ),
        ("a = [[1, 'x'], {b = 1}]", "a = a list of other than strings"),
        // Tables.
        ("[a]\nb = 1\n[ c . 'd e' ]\nf = 2\n[g]", "a|b = 1; c|d e|f = 2; g = {}"),
        ("[a.b.c]\nx = 1\n[a]\ny = 2", "a|b|c|x = 1; a|y = 2"),
        ("[a]\nb.c = 1\n[a.b.d]\nx = 1", "a|b|c = 1; a|b|d|x = 1"),
        ("[a]\nx = 1\n[b]\n[a.c]\ny = 2", "a|x = 1; b = {}; a|c|y = 2"),
        ("a = { b = 1, c.d = 'x', e = {} }", "a|b = 1; a|c|d = x; a|e = {}"),
        ("a = { b = [\n1,\n2] }", "a|b = a list of other than strings"),
        ("[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 2\n[[a.e]]\n[[a.e]]", "a = a array of tables"),
    ])
    func `a text has the values of the specification`(text: String, expected: String) {
        #expect(read(text) == expected)
        #expect(read(text.replacing("\n", with: "\r\n").replacing("\r\r\n", with: "\r\n")) == expected)
    }

    @Test(arguments: [
        ("a", "1:2 a key without = and a value"), ("a =", "1:4 no value where one is expected"),
        ("a = 1 b = 2", "1:7 more after the end of a value"),
        ("= 1", "1:1 no key where one is expected"), ("a. = 1", "1:4 no key where one is expected"),
        ("a = 1\na = 2", "2:1 'a' is defined already"),
        ("a.b = 1\na.b.c = 2", "2:1 'b' is defined already"), ("\"\"\"a\"\"\" = 1", "1:3 a key without = and a value"),
        ("é = \"ü\" x", "1:1 no key where one is expected"), ("a = \"ü\" x", "1:9 more after the end of a value"),
        ("a = \"x", "1:7 a text without its end"), ("a = \"x\ny\"", "1:7 a text without its end"),
        ("a = '''x", "1:9 a text without its end"),
        ("a = \"\u{1}\"", "1:6 a control character"), ("# \u{7F}", "1:3 a control character"),
        ("a = 1\rb = 2", "1:6 more after the end of a value"),
        (#"a = "\x41""#, "1:6 an escape that does not exist"), (#"a = "\uD800""#, "1:6 an escape that does not exist"),
        (#"a = "\u12""#, "1:6 an escape that does not exist"), (#"a = "\u0000""#, "1:8 a NUL character"),
        ("a = \"x\r\ny\"", "1:7 a text without its end"),
        ("a = [1 2]", "1:8 a list without its comma or end"), ("a = [1,,2]", "1:8 no value where one is expected"),
        ("a = [1", "1:7 a list without its comma or end"), ("a = { b = 1, }", "1:14 no key where one is expected"),
        ("a = { b = 1\n}", "1:12 a table in { } without its comma or end, which are on the same line"),
        ("[a", "1:3 a header without its closing bracket"), ("[]", "1:2 a table without a name"),
        ("[a]]", "1:4 more after the end of a value"),
        ("[a]\n[b]\n[a]", "3:4 the table [a] begins in line 1: write all of its keys there"),
        ("a = 1\n[a]", "2:2 'a' is defined already"),
        ("a = 1\n[a.b]", "2:2 'a' is defined already"), ("a = {}\na.b = 1", "2:1 'a' is defined already"),
        ("a = {}\n[a.b]", "2:2 'a' is defined already"),
        ("a.b = 1\n[a]", "2:4 the table [a] begins in line 1: write all of its keys there"),
        ("[a]\nb.c = 1\n[a.b]", "3:6 the table [a.b] begins in line 2: write all of its keys there"),
        ("[a.b]\n[c]\n[a]\nb = 1", "4:1 'b' is defined already"),
        ("[a]\n[[a]]", "2:3 'a' is defined already"),
        ("a = [1]\n[[a]]", "2:3 'a' is defined already"),
    ])
    func `a text that is not valid has an error with its place`(text: String, expected: String) {
        #expect(read(text) == expected)
    }

    @Test(arguments: [
        "word", "True", "01", "1_", "_1", "1__0", "+0x1", "0x", "0xG", "0b2", "9223372036854775808", "1.", ".5", "1.e2",
        "1e", "1_.5", "01.5", "++1",
        "1979-13-01", "1979-02-29", "1979-05-27T", "1979-05-27T7:32:00", "1979-05-27T24:00:00", "07:32", "07:32:00Z",
        "07:32:00.", "1979-05-27T07:32:00+24:00",
    ])
    func `a bare word is a number, a date or an error`(word: String) {
        #expect(read("a = \(word)") == "1:5 a value that is not quoted, and neither a number nor true or false")
    }

    @Test func `nesting has a limit`() {
        let deep = 10_000
        let texts = [
            "a = " + String(repeating: "[", count: deep), "a = " + String(repeating: "{b = ", count: deep),
            "a" + String(repeating: ".b", count: deep) + " = 1",
            "[a" + String(repeating: ".b", count: deep) + "]",
        ]
        for text in texts { #expect(read(text).hasSuffix(" it is nested too deep")) }
        #expect(
            read("a = " + String(repeating: "[", count: 60) + String(repeating: "]", count: 60))
                == "a = a list of other than strings")
    }
}
