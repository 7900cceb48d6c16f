import NIOCore
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
            #expect(parts == whole || head(of: parts) == head(of: whole), "cut at \(cut)")
        }
        #expect(head(of: outcome(bytes.indices.map { bytes[$0...$0] })) == head(of: whole))
        return whole
    }

    /// The outcome without what bytes after the response change.
    private func head(of outcome: String) -> Substring { outcome.prefix { $0 != ";" } }

    /// The response that a parser reads from the pieces and the end of the connection, in one line.
    private func outcome(_ pieces: [ArraySlice<UInt8>], to request: HTTPResponseParser.Request = .get) -> String {
        var parser = HTTPResponseParser(to: request)
        do throws(HTTPError) {
            for piece in pieces {
                if let response = try parser.take(piece) { return describe(response, parser) }
            }
        } catch {
            return switch error {
            case .malformed(let text): text
            case .tooLong(let limit): "more than \(limit)"
            default: "\(error)"
            }
        }
        return parser.closed().map { describe($0, parser) } ?? "early"
    }

    private func describe(_ response: HTTPResponse, _ parser: HTTPResponseParser) -> String {
        "\(response.status) \(String(decoding: response.body, as: UTF8.self))"
            + (parser.keepsConnection ? "; kept" : "")
            + (parser.rest.isEmpty ? "" : "; then \(String(decoding: parser.rest, as: UTF8.self))")
    }

    @Test func `a field's name has the characters of a token, and its value no control character`() {
        let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max {
            let name = Array("x".utf8) + [byte] + Array("y: z".utf8)
            // A colon ends the name, and the rest is its value.
            let isName = token.contains(byte) || byte == UInt8(ascii: ":")
            #expect((HTTPField(name.indices, in: name.span) != nil) == isName, "\(byte)")
            let value = Array("x: ".utf8) + [byte] + Array("z".utf8)
            let isValue = byte >= 0x20 && byte != 0x7F || byte == 0x09
            #expect((HTTPField(value.indices, in: value.span) != nil) == isValue, "\(byte)")
        }
    }

    @Test(arguments: [
        // The usual response, and the headers that keep or close a connection.
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nab", "200 ab; kept"),
        ("HTTP/1.1 200\ncontent-length:2\n\nab", "200 ab; kept"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nConnection: close\n\nab", "200 ab"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nConnection: foo , Close\n\nab", "200 ab"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\n\nab", "200 ab"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\nConnection: Keep-Alive\n\nab", "200 ab; kept"),
        ("HTTP/1.0 200 OK\nContent-Length: 2\nConnection: close, keep-alive\n\nab", "200 ab"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nabc", "200 ab; then c"),
        // Bodies of each kind.
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "200 ; kept"),
        ("HTTP/1.1 204 No Content\n\n", "204 ; kept"),
        ("HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n", "304 ; kept"),
        ("HTTP/1.1 200 OK\n\nto the end", "200 to the end"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n2\nab\n3;x=y\ncde\n0\n\n", "200 abcde; kept"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding:  chunked \n\n2\nab\n0\n\n", "200 ab; kept"),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked, chunked\n\n2\nab\n0\n\n",
            "a Transfer-Encoding that was not requested"
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding:\tchunked\n\n2\nab\n0\n\n",
            "a Transfer-Encoding that was not requested"
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA\n0123456789\n000\nTrailer: 1\n\n", "200 0123456789; kept"),
        // Interim responses are skipped (RFC 9110, section 15.2).
        (
            "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\na",
            "200 a; kept"
        ),
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\nContent-Length: 2\n\n{}", "429 {}; kept"),
        // Responses that end too early.
        ("", "early"),
        ("HTTP/1.1 200 OK\nContent-Le", "early"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\na", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n", "early"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\n", "early"),
        // Responses that could be read in two ways.
        ("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3\n\nabc", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nContent-Length: 2, 2\n\nab", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 2\n\nab", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA \n0123456789\n0\n\n", "a size of a chunk that is not valid"),
        ("HTTP/1.1 200 OK\nContent-Length: -2\n\nab", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nContent-Length: +2\n\nab", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nContent-Length:\n\nab", "two lengths, or one that is no number"),
        ("HTTP/1.1 200 OK\nContent-Length: 99999999999999999999\n\nab", "two lengths, or one that is no number"),
        (
            "HTTP/1.1 200 OK\nContent-Length: 2\nTransfer-Encoding: chunked\n\n0\n\n",
            "a length beside chunks"
        ),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\nab", "a Transfer-Encoding that was not requested"),
        ("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n", "a Transfer-Encoding that was not requested"),
        ("HTTP/1.1 200 OK\nContent-Length : 2\n\nab", "a field that is not valid"),
        ("HTTP/1.1 200 OK\nA: b\n Content-Length: 2\n\nab", "a field that is not valid"),
        ("HTTP/1.1 200 OK\n: 2\n\nab", "a field that is not valid"),
        ("HTTP/1.1 200 OK\nno colon\n\nab", "a field that is not valid"),
        ("HTTP/1.1 200 OK\nA: b\u{0}c\n\nab", "a field that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n-1\n\n", "a size of a chunk that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0x2\nab\n0\n\n", "a size of a chunk that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\n\n", "a size of a chunk that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n 2\nab\n0\n\n", "a size of a chunk that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\nno colon\n\n", "a trailer that is not valid"),
        ("HTTP/1.1 103 Early Hints\nno colon\n\nHTTP/1.1 200 OK\n\n", "a field that is not valid"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\nabc\n0\n\n", "a chunk without its end"),
        // Other texts.
        ("HTTP/2 200 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 20 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 2000 OK\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 099 OK\n\n", "status 99"),
        ("http/1.1 200 OK\n\n", "no status line of HTTP/1.1"),
        ("SSH-2.0-OpenSSH_9.2\n\n", "no status line of HTTP/1.1"),
        ("\n\n", "no status line of HTTP/1.1"),
        ("HTTP/1.1 101 Switching Protocols\n\n", "status 101, which was not requested"),
    ])
    func `a response is read or refused, however it is cut`(text: String, expected: String) {
        #expect(read(text) == expected)
    }

    @Test(arguments: ["\r", "\n", "\u{0}"])
    func `no line contains a character that another reader treats as its end`(byte: String) {
        func outcome(_ text: String) -> String { self.outcome([Array(text.utf8)[...]]) }
        let refusals = [
            "a field that is not valid", "a line without CR LF", "a size of a chunk that is not valid",
            "a trailer that is not valid", "no status line of HTTP/1.1",
        ]
        #expect(refusals.contains(outcome("HTTP/1.1 200 O\(byte)K\r\nContent-Length: 0\r\n\r\n")))
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(refusals.contains(outcome(chunked + "2;\(byte)x\r\nab\r\n0\r\n\r\n")))
        #expect(refusals.contains(outcome(chunked + "0\r\nA: \(byte)b\r\n\r\n")))
    }

    @Test func `no part of a response is read without a limit`() throws {
        func answer(to first: String, endlessly next: String) -> String {
            let piece = Array(String(repeating: next, count: 100).utf8)[...]
            return outcome([Array(first.utf8)[...]] + Array(repeating: piece, count: 900))
        }
        let head = "HTTP/1.1 200 OK\r\n"
        #expect(answer(to: head, endlessly: "A: b\r\n") == "a head of more than 16384 bytes")
        #expect(answer(to: "HTTP/1.1 200 ", endlessly: "x") == "a head of more than 16384 bytes")
        #expect(answer(to: head + "\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: head + "Content-Length: 65537\r\n\r\n", endlessly: "x") == "more than 65536")
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        #expect(answer(to: chunked, endlessly: "1\r\nx\r\n") == "more than 65536")
        #expect(answer(to: chunked + "10001\r\n", endlessly: "x") == "more than 65536")
        #expect(answer(to: chunked, endlessly: "0") == "more than 65536")
        #expect(answer(to: chunked + "0\r\n", endlessly: "x") == "more than 65536")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\n\n", "200 "), ("HTTP/1.0 200 Connection established\nX: y\n\n", "200 "),
        // A length and a coding have no meaning here (RFC 9110, section 9.3.6).
        ("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n", "200 "),
        ("HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n", "200 "), ("HTTP/1.1 200 OK\n\nearly", "200 ; then early"),
        ("HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 70000\n\n", "407 "),
        ("HTTP/1.1 200 OK\n", "early"),
        ("HTTP/1.1 101 Switching Protocols\n\n", "status 101, which was not requested"),
    ])
    func `the response to CONNECT ends with its head`(text: String, expected: String) {
        let result = outcome([Array(text.replacing("\n", with: "\r\n").utf8)[...]], to: .connect)
        #expect(result.replacing("; kept", with: "") == expected)
    }

    @Test(arguments: [
        ("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\n\nframes", "101 ; then frames"),
        ("HTTP/1.1 100 Continue\n\nHTTP/1.1 101 Switching Protocols\n\n", "101 ; kept"),
        ("HTTP/1.1 429 Too Many Requests\nRetry-After: 3\nContent-Length: 2\n\n{}", "429 {}; kept"),
        ("HTTP/1.1 503 Service Unavailable\n\nwait", "503 wait"),
    ])
    func `the response to an upgrade ends with its head or is a refusal with a body`(text: String, expected: String) {
        #expect(outcome([Array(text.replacing("\n", with: "\r\n").utf8)[...]], to: .upgrade) == expected)
    }

    @Test func `nothing is kept after the response`() throws {
        var parser = HTTPResponseParser(to: .upgrade)
        #expect(try parser.take(Array("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".utf8)) != nil)
        #expect(try parser.take(Array("more".utf8)) == nil && parser.rest.isEmpty)
    }

    @Test func `the first header of a name is found, whatever its case`() throws {
        let text = "HTTP/1.1 200 OK\r\nDATES: x\r\nDATE:\t now \r\nX:\r\nDate: later\r\nContent-Length: 0\r\n\r\n"
        var parser = HTTPResponseParser()
        let response = try #require(try parser.take(Array(text.utf8)))
        #expect(response.header("date") == "now")
        #expect(response.header("x")?.isEmpty == true)
        #expect(response.header("retry-after") == nil)
        #expect(response.fields.all.map(\.name) == ["DATES", "DATE", "X", "Date", "Content-Length"])
    }
}

@Suite struct RequestTests {
    @Test(arguments: [
        ("https://api.exchange.test/v3?a=b&c=%20d", "/v3?a=b&c=%20d", "api.exchange.test"),
        ("http://Exchange.test:8080", "/", "Exchange.test:8080"),
        ("https://exchange.test:443/", "/", "exchange.test"),
        ("http://exchange.test:443/", "/", "exchange.test:443"),
        ("http://[::1]:81/a", "/a", "[::1]:81"),
        ("https://exchange.test?a=\tb&c=%25%2x\"[é]#part", "/?a=%09b&c=%25%252x%22%5B%C3%A9%5D", "exchange.test"),
    ])
    func `an address becomes a request`(url: String, target: String, host: String) throws {
        let request = try #require(HTTPRequest(url, headers: [("Accept", "application/json")]))
        let start =
            "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept-Encoding: identity\r\nAccept: application/json\r\n"
        #expect(String(buffer: request.bytes(userAgent: "me/1")) == start + "User-Agent: me/1\r\n\r\n")
        let upgrade = request.bytes(userAgent: "me/1", more: ["Upgrade": "websocket"])
        #expect(String(buffer: upgrade) == start + "User-Agent: me/1\r\nUpgrade: websocket\r\n\r\n")
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
