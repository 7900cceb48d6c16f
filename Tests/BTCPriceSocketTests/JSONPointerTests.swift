import Testing

@testable import BTCPriceSocket

@Suite struct JSONPointerTests {
    /// The document of RFC 6901, section 5.
    private static let document = #"""
        {"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}
        """#

    @Test(arguments: [
        ("/foo", #"["bar","baz"]"#), ("/foo/0", #""bar""#), ("/", "0"), ("/a~1b", "1"), ("/c%d", "2"), ("/e^f", "3"),
        ("/g|h", "4"), (#"/i\j"#, "5"), (#"/k"l"#, "6"), ("/ ", "7"), ("/m~0n", "8"),
    ])
    func `a pointer leads to the value that the RFC says`(text: String, expected: String) throws {
        let document = try JSONValue(parsing: Array(Self.document.utf8)[...])
        let pointer = try #require(JSONPointer(text))
        #expect(pointer.value(in: document).map { String(decoding: $0.text, as: UTF8.self) } == expected)
        #expect(pointer.description == text)
    }

    @Test(arguments: ["/foo/2", "/foo/01", "/foo/-", "/foo/+1", "/foo/bar", "/bar", "/foo/0/0", "/a/b", "//"])
    func `a pointer to nothing leads to no value`(text: String) throws {
        let document = try JSONValue(parsing: Array(Self.document.utf8)[...])
        #expect(try #require(JSONPointer(text)).value(in: document) == nil)
    }

    @Test func `the whole document has an empty pointer`() throws {
        let document = try JSONValue(parsing: Array(Self.document.utf8)[...])
        #expect(try #require(JSONPointer("")).value(in: document) == document)
        #expect(try #require(JSONPointer("/foo/7/x")).nearest(in: document).place.description == "/foo")
    }

    @Test(arguments: ["foo", "$.foo", "/m~n", "/m~2n", "/~"]) func `other texts are not pointers`(text: String) {
        #expect(JSONPointer(text) == nil)
    }

    @Test(arguments: ["a/b", "m~n", "~1", "x"]) func `an escaped text is one token`(text: String) {
        #expect(JSONPointer("/" + JSONPointer.escaped(text))?.tokens == [text])
    }
}
