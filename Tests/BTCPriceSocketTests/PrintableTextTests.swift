import Testing

@testable import BTCPriceSocket

@Suite struct PrintableTextTests {
    @Test func `of names that become the same, the first one is kept`() throws {
        let reply = try Reply(
            decoding: Array(#"{"parameters":{"a":"\u001b","\u001b":1,"\\u{1b}":2,"b":{"\u001b":3}}}"#.utf8)[...])
        let text = String(decoding: try reply.printableResult().text, as: UTF8.self)
        #expect(text == #"{"a":"\\u{1b}","\\u{1b}":1,"b":{"\\u{1b}":3}}"#)
    }
}
