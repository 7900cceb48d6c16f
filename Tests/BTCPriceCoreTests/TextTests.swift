import Testing

@testable import BTCPriceCore

@Suite struct TextTests {
    @Test(arguments: [
        ("a.b.c", ".", "-", "a-b-c"), ("a", "b", "c", "a"), ("", "a", "b", ""), ("{key}, {key}", "{key}", "s", "s, s"),
        ("aaa", "aa", "b", "ba"),
    ])
    func `each occurrence of a text is replaced`(text: String, old: String, new: String, expected: String) {
        #expect(text.replaced(old, by: new) == expected)
        #expect(text.holds(old) == (text != expected))
    }

    @Test(arguments: [
        ("12", 12), ("007", 7), ("", nil), ("1234", nil), ("+1", nil), ("-1", nil), ("1 ", nil), ("١", nil),
    ])
    func `a whole number has only digits, and not too many`(text: String, expected: Int?) {
        #expect(text.wholeNumber(digits: 3) == expected)
    }

    @Test(arguments: [
        ("localhost", true), ("::1", true), ("127.0.0.1", true), ("127.255.1.23", true), ("127.0.0", false),
        ("128.0.0.1", false),
        ("127.0.0.1.example", false), ("127.0.0.a", false), ("", false),
    ])
    func `this machine's addresses are known`(host: String, expected: Bool) {
        #expect(host.isLoopbackHost == expected)
    }

    @Test(arguments: [
        ("a", true), ("mempool-space2", true), (String(repeating: "a", count: 32), true),
        (String(repeating: "a", count: 33), false),
        ("", false), ("1a", false), ("-a", false), ("Binance", false), ("a_b", false), ("ä", false), ("a b", false),
    ])
    func `the name of a venue is short and plain`(name: String, expected: Bool) {
        #expect(Market.isVenueName(name) == expected)
    }
}
