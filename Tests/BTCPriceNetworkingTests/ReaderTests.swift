import NIOCore
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// What is taken for an answer, and what is not (RFC 9112).
@Suite struct ReaderTests {
    /// What a text reads as, at once and cut into pieces at every place: one line, so that it can be looked over.
    private func read(_ text: String, isTunnel: Bool = false) -> String {
        let bytes = Array(text.replacing("\n", with: "\r\n").utf8)
        let whole = outcome([bytes[...]], isTunnel: isTunnel)
        for cut in 0...bytes.count {
            let parts = outcome([bytes[..<cut], bytes[cut...]], isTunnel: isTunnel)
            // What follows an answer is met later, and nobody waits for it.
            #expect(parts == whole || parts.replacing(" kept", with: "") == whole, "cut at \(cut)")
        }
        #expect(
            outcome(bytes.indices.map { bytes[$0...$0] }, isTunnel: isTunnel).replacing(" kept", with: "")
                == whole.replacing(" kept", with: ""))
        return whole
    }

    private func outcome(_ pieces: [ArraySlice<UInt8>], isTunnel: Bool) -> String {
        var reader = HTTPResponseReader(isTunnel: isTunnel)
        do throws(HTTPError) {
            for piece in pieces {
                if let answer = try reader.take(piece) { return describe(answer, reader) }
            }
            return describe(try reader.end(), reader)
        } catch {
            return switch error {
            case .malformed(let text): text
            case .tooLong(let limit): "more than \(limit)"
            case .closedEarly: "early"
            default: "\(error)"
            }
        }
    }

    private func describe(_ answer: HTTPResponse, _ reader: HTTPResponseReader) -> String {
        "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))" + (reader.keepsConnection ? " kept" : "")
    }

    @Test(arguments: [
        // The usual one, and how a connection stays or goes.
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nab", "200 ab kept"),
        ("HTTP/1.1 200\ncontent-length:2\n\nab", "200 ab kept"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nConnection: close\n\nab", "200 ab"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nConnection: foo , Close\n\nab", "200 ab"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\n\nab", "200 ab"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\nConnection: Keep-Alive\n\nab", "200 ab kept"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\nConnection: close, keep-alive\n\nab", "200 ab"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nabc", "200 ab"),
        // Bodies of each kind.
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "200  kept"),
        ("HTTP/1.1 204 No Content\n\n", "204  kept"),
        ("HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n", "304  kept"),
        ("HTTP/1.1 200 OK\n\nto the end", "200 to the end"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n2\nab\n3;x=y\ncde\n0\n\n", "200 abcde kept"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA \n0123456789\n000\nTrailer: 1\n\n", "200 0123456789 kept"),
        (
            "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\na",
            "200 a kept"
        ),
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\nContent-Length: 2\nContent-Length: 2\n\n{}", "429 {} kept"),
        // Ends too early.
        ("", "early"),
        ("HTTP/1.1 200 OK\nContent-Le", "early"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\na", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\n", "early"),
        // What could be read in two ways.
        ("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3\n\nabc", "a Content-Length that is none"),
        ("HTTP/1.1 200 OK\nContent-Length: 2, 2\n\nab", "a Content-Length that is none"),
        ("HTTP/1.1 200 OK\nContent-Length: -2\n\nab", "a Content-Length that is none"),
        ("HTTP/1.1 200 OK\nContent-Length: +2\n\nab", "a Content-Length that is none"),
        ("HTTP/1.1 200 OK\nContent-Length:\n\nab", "a Content-Length that is none"),
        ("HTTP/1.1 200 OK\nContent-Length: 99999999999999999999\n\nab", "a Content-Length that is none"),
        (
            "HTTP/1.1 200 OK\nContent-Length: 2\nTransfer-Encoding: chunked\n\n0\n\n",
            "both a Content-Length and a Transfer-Encoding"
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\nab", "a Transfer-Encoding that was not asked for"),
        ("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n", "a Transfer-Encoding that was not asked for"),
        ("HTTP/1.1 200 OK\nContent-Length : 2\n\nab", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\nA: b\n Content-Length: 2\n\nab", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\n: 2\n\nab", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\nno colon\n\nab", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\nA: b\u{0}c\n\nab", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n-1\n\n", "the size of a chunk that is no number"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0x2\nab\n0\n\n", "the size of a chunk that is no number"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\n\n", "the size of a chunk that is no number"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n 2\nab\n0\n\n", "the size of a chunk that is no number"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\nno colon\n\n", "a line after the body that is no field"),
        ("HTTP/1.1 103 Early Hints\nno colon\n\nHTTP/1.1 200 OK\n\n", "a line in the head that is no field"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\nabc\n0\n\n", "a chunk longer than it said"),
        // Something else.
        ("HTTP/2 200 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 20 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 2000 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 099 OK\n\n", "no status line of HTTP/1.1"),
        ("http/1.1 200 OK\n\n", "no status line of HTTP/1.1"),
        ("SSH-2.0-OpenSSH_9.2\n\n", "no status line of HTTP/1.1"),
        ("\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 101 Switching Protocols\n\n", "another protocol, which nobody asked for"),
    ])
    func `an answer is read, or refused, however it is cut`(text: String, expected: String) {
        #expect(read(text) == expected)
    }

    @Test(arguments: ["\r", "\n", "\u{0}"])
    func `no line holds what another reader takes for its end`(byte: String) {
        func outcome(_ text: String) -> String { self.outcome([Array(text.utf8)[...]], isTunnel: false) }
        #expect(outcome("HTTP/1.1 200 O\(byte)K\r\nContent-Length: 0\r\n\r\n") == "no status line of HTTP/1.1")
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(outcome(chunked + "2;\(byte)x\r\nab\r\n0\r\n\r\n") == "a line with a line end of another kind in it")
        #expect(outcome(chunked + "0\r\nA: \(byte)b\r\n\r\n") == "a line with a line end of another kind in it")
    }

    @Test func `a tunnel begins right after its head`() {
        #expect(read("HTTP/1.1 200 Connection established\n\n", isTunnel: true) == "200  kept")
        #expect(read("HTTP/1.0 200 OK\nContent-Length: 5\nConnection: close\n\n", isTunnel: true) == "200  kept")
        #expect(read("HTTP/1.1 200 OK\n\nab", isTunnel: true) == "200 ")
        #expect(read("HTTP/1.1 200 OK\nContent-Length: none\n\n", isTunnel: true) == "200  kept")
        #expect(read("HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n", isTunnel: true) == "200  kept")
        // However long the page behind it, or never to end.
        #expect(read("HTTP/1.1 407 Who\nContent-Length: 100000\n\n", isTunnel: true) == "407  kept")
        #expect(read("HTTP/1.0 403 No\n\na page", isTunnel: true) == "403 ")
    }

    @Test func `nothing is read without end`() throws {
        func answer(to first: String, endlessly next: String) -> String {
            let piece = Array(String(repeating: next, count: 100).utf8)[...]
            return outcome([Array(first.utf8)[...]] + Array(repeating: piece, count: 700), isTunnel: false)
        }
        let head = "HTTP/1.1 200 OK\r\n"
        #expect(answer(to: head, endlessly: "A: b\r\n") == "a head of more than 16384 bytes")
        #expect(answer(to: "", endlessly: "x") == "a head of more than 16384 bytes")
        #expect(answer(to: head + "\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: head + "Content-Length: 65537\r\n\r\n", endlessly: "x") == "more than 65536")
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        #expect(answer(to: chunked, endlessly: "1\r\nx\r\n") == "more than 65536")
        #expect(answer(to: chunked + "10001\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: chunked, endlessly: "0") == "a line of more than 16384 bytes")
        #expect(answer(to: chunked + "0\r\n", endlessly: "x") == "a line of more than 16384 bytes")
    }

    @Test func `the first field of a name is found, whatever its case`() throws {
        var reader = HTTPResponseReader()
        let answer = try #require(
            try reader.take(
                Array("HTTP/1.1 200 OK\r\nDATE: \t now \r\nX: \r\nDate: later\r\nContent-Length: 0\r\n\r\n".utf8)))
        #expect(answer.field("date") == "now")
        #expect(answer.field("x")?.isEmpty == true)
        #expect(answer.field("retry-after") == nil)
    }
}

@Suite struct QuestionTests {
    @Test(arguments: [
        ("https://api.exchange.test/v3?a=b&c=%20d", "GET /v3?a=b&c=%20d HTTP/1.1\r\nHost: api.exchange.test"),
        ("http://Exchange.test:8080", "GET / HTTP/1.1\r\nHost: Exchange.test:8080"),
        ("https://exchange.test:443/", "GET / HTTP/1.1\r\nHost: exchange.test"),
        ("http://exchange.test:443/", "GET / HTTP/1.1\r\nHost: exchange.test:443"),
        ("http://[::1]:81/a", "GET /a HTTP/1.1\r\nHost: [::1]:81"),
    ])
    func `an address becomes a request`(url: String, expected: String) throws {
        let question = try #require(HTTPRequest(url, fields: [("Accept", "application/json")]))
        #expect(
            String(buffer: question.bytes(userAgent: "me/1"))
                == expected + "\r\nAccept: application/json\r\nUser-Agent: me/1\r\n\r\n")
    }

    @Test(arguments: [
        "", "exchange.test", "ftp://exchange.test", "https://", "https://a b/", "http://u:p@h/", "http://h:70000/",
    ])
    func `what is no address is none`(url: String) {
        #expect(HTTPRequest(url) == nil)
    }

    @Test func `no name is longer than names can be`() {
        #expect(HTTPRequest("http://\(String(repeating: "a", count: 253))/") != nil)
        #expect(HTTPRequest("http://\(String(repeating: "a", count: 254))/") == nil)
    }

    @Test func `a field with a line end is not sent`() {
        #expect(HTTPRequest("http://h/", fields: [("Authorization", "key\r\nHost: other")]) == nil)
    }
}
