import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// Valid and invalid responses (RFC 9112).
@Suite struct ReaderTests {
    /// The result of reading a text, at once and cut at every place, in one line.
    private func read(_ text: String) -> String {
        let bytes = Array(text.replacing("\n", with: "\r\n").utf8)
        let whole = outcome([bytes[...]])
        for cut in 0...bytes.count {
            let parts = outcome([bytes[..<cut], bytes[cut...]])
            // Bytes after a response are found later, and no request waits for them.
            #expect(parts == whole || parts.replacing(" kept", with: "") == whole, "cut at \(cut)")
        }
        #expect(
            outcome(bytes.indices.map { bytes[$0...$0] }).replacing(" kept", with: "")
                == whole.replacing(" kept", with: ""))
        return whole
    }

    /// The responses that the handlers of a connection read from the pieces.
    private func outcome(_ pieces: [ArraySlice<UInt8>]) -> String {
        let (channel, meter) = (EmbeddedChannel(), ResponseMeter())
        var collector = HTTPResponseCollector()
        func response() throws -> HTTPResponse? {
            while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
                if let response = try collector.take(part) { return response }
            }
            return nil
        }
        meter.reset()
        do {
            try channel.pipeline.syncOperations.addHandlers([
                meter, HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()),
            ])
            let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
            try channel.writeOutbound(HTTPClientRequestPart.head(head))
            for piece in pieces {
                let written = Result { try channel.writeInbound(ByteBuffer(bytes: piece)) }
                // A response before an error counts.
                if let response = try response() { return describe(response, collector, meter) }
                _ = try written.get()
            }
            _ = try channel.finish()
            return try response().map { describe($0, collector, meter) } ?? "early"
        } catch {
            return switch error {
            case HTTPError.malformed(let text): text
            case HTTPError.tooLong(let limit): "more than \(limit)"
            case HTTPParserError.invalidEOFState: "early"
            case is HTTPParserError, is NIOHTTPDecoderError: "malformed"
            default: "\(error)"
            }
        }
    }

    private func describe(_ response: HTTPResponse, _ collector: HTTPResponseCollector, _ meter: ResponseMeter)
        -> String
    {
        "\(response.status) \(String(decoding: response.body, as: UTF8.self))"
            + (collector.keepsConnection(meter) ? " kept" : "")
    }

    @Test(arguments: [
        // The usual response, and the headers that keep or close a connection.
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
        ("HTTP/1.1 200 OK\nTransfer-Encoding:  chunked \n\n2\nab\n0\n\n", "200 ab kept"),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked, chunked\n\n2\nab\n0\n\n",
            "a Transfer-Encoding that was not requested"
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA\n0123456789\n000\nTrailer: 1\n\n", "200 0123456789 kept"),
        // The end of the head is not found behind interim responses, which no server sends to these requests.
        (
            "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\na",
            "200 a"
        ),
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\nContent-Length: 2\n\n{}", "429 {} kept"),
        // Responses that end too early.
        ("", "early"),
        ("HTTP/1.1 200 OK\nContent-Le", "early"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\na", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\n", "early"),
        // Responses that could be read in two ways.
        ("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3\n\nabc", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length: 2, 2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA \n0123456789\n0\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length: -2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length: +2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length:\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nContent-Length: 99999999999999999999\n\nab", "malformed"),
        (
            "HTTP/1.1 200 OK\nContent-Length: 2\nTransfer-Encoding: chunked\n\n0\n\n",
            "malformed"
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\nab", "a Transfer-Encoding that was not requested"),
        ("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n", "a Transfer-Encoding that was not requested"),
        ("HTTP/1.1 200 OK\nContent-Length : 2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nA: b\n Content-Length: 2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\n: 2\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nno colon\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nA: b\u{0}c\n\nab", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n-1\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0x2\nab\n0\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n 2\nab\n0\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\nno colon\n\n", "malformed"),
        ("HTTP/1.1 103 Early Hints\nno colon\n\nHTTP/1.1 200 OK\n\n", "malformed"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\nabc\n0\n\n", "malformed"),
        // Other texts.
        ("HTTP/2 200 OK\n\n", "malformed"),
        ("HTTP/1.1 20 OK\n\n", "malformed"),
        ("HTTP/1.1 2000 OK\n\n", "malformed"),
        ("HTTP/1.1 099 OK\n\n", "status 99, which is not final"),
        ("http/1.1 200 OK\n\n", "malformed"),
        ("SSH-2.0-OpenSSH_9.2\n\n", "malformed"),
        ("\n\n", "early"),
        ("HTTP/1.1 101 Switching Protocols\n\n", "status 101, which is not final"),
    ])
    func `a response is read or refused, however it is cut`(text: String, expected: String) {
        #expect(read(text) == expected)
    }

    @Test(arguments: ["\r", "\n", "\u{0}"])
    func `no line contains a character that another reader treats as its end`(byte: String) {
        func outcome(_ text: String) -> String { self.outcome([Array(text.utf8)[...]]) }
        // NIOHTTP1 lets a NUL through in the reason phrase, which is not used.
        let reason = outcome("HTTP/1.1 200 O\(byte)K\r\nContent-Length: 0\r\n\r\n")
        #expect(reason == (byte == "\u{0}" ? "200  kept" : "malformed"))
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(outcome(chunked + "2;\(byte)x\r\nab\r\n0\r\n\r\n") == "malformed")
        #expect(outcome(chunked + "0\r\nA: \(byte)b\r\n\r\n") == "malformed")
    }

    @Test func `no part of a response is read without a limit`() throws {
        func answer(to first: String, endlessly next: String) -> String {
            let piece = Array(String(repeating: next, count: 100).utf8)[...]
            return outcome([Array(first.utf8)[...]] + Array(repeating: piece, count: 900))
        }
        let head = "HTTP/1.1 200 OK\r\n"
        #expect(answer(to: head, endlessly: "A: b\r\n") == "malformed")
        #expect(answer(to: "HTTP/1.1 200 ", endlessly: "x") == "a head of more than 16384 bytes")
        #expect(answer(to: head + "\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: head + "Content-Length: 65537\r\n\r\n", endlessly: "x") == "more than 65536")
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        #expect(answer(to: chunked, endlessly: "1\r\nx\r\n") == "more than 65536")
        #expect(answer(to: chunked + "10001\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: chunked, endlessly: "0") == "more than 65536")
        #expect(answer(to: chunked + "0\r\n", endlessly: "x") == "more than 65536")
    }

    @Test func `a byte without a request is an error`() throws {
        let (channel, meter) = (EmbeddedChannel(), ResponseMeter())
        try channel.pipeline.syncOperations.addHandler(meter)
        #expect(throws: HTTPError.self) { try channel.writeInbound(ByteBuffer(string: "H")) }
        meter.reset()
        try channel.writeInbound(ByteBuffer(string: "HTTP/1.1 200 OK"))
        meter.complete()
        #expect(throws: HTTPError.self) { try channel.writeInbound(ByteBuffer(string: "H")) }
    }

    @Test func `the first header of a name is found, whatever its case`() {
        let headers = HTTPHeaders([("DATE", "\t now "), ("X", ""), ("Date", "later")])
        let response = HTTPResponse(status: 200, headers: headers, body: [])
        #expect(response.header("date") == "now")
        #expect(response.header("x")?.isEmpty == true)
        #expect(response.header("retry-after") == nil)
    }
}

@Suite struct RequestTests {
    @Test(arguments: [
        ("https://api.exchange.test/v3?a=b&c=%20d", "/v3?a=b&c=%20d", "api.exchange.test"),
        ("http://Exchange.test:8080", "/", "Exchange.test:8080"),
        ("https://exchange.test:443/", "/", "exchange.test"),
        ("http://exchange.test:443/", "/", "exchange.test:443"),
        ("http://[::1]:81/a", "/a", "[::1]:81"),
    ])
    func `an address becomes a request`(url: String, target: String, host: String) throws {
        let head = try #require(HTTPRequest(url, headers: [("Accept", "application/json")])).head(userAgent: "me/1")
        #expect(head.method == .GET && head.version == .http1_1 && head.uri == target)
        #expect(
            head.headers == [
                "Host": host, "Accept-Encoding": "identity", "Accept": "application/json", "User-Agent": "me/1",
            ])
    }

    @Test(arguments: [
        "", "exchange.test", "ftp://exchange.test", "https://", "https://a b/", "http://u:p@h/", "http://h:70000/",
        "http://::1:8080", "http://a:b:80", "https://:443:443", "http://[1:2]", "http://[a]", "https://ä.de",
    ])
    func `an invalid address is refused`(url: String) {
        #expect(HTTPRequest(url) == nil)
    }

    @Test func `a host name is not longer than the limit`() {
        #expect(HTTPRequest("http://\(String(repeating: "a", count: 253))/") != nil)
        #expect(HTTPRequest("http://\(String(repeating: "a", count: 254))/") == nil)
    }

    @Test func `a field with a line end is not sent`() {
        #expect(HTTPRequest("http://h/", headers: [("Authorization", "key\r\nHost: other")]) == nil)
    }
}
