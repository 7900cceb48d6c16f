/// Reads the response to one request (RFC 9112), however its bytes are cut. A pure value.
///
/// It refuses a response that two readers could understand differently: two lengths, a length beside chunks, a transfer coding that was
/// not requested, a line that does not end with CR LF, a blank beside a chunk's size. Interim responses are skipped.
struct HTTPResponseParser {
    /// It decides where a response ends (RFC 9112, section 6.3).
    enum Request {
        case get
        /// A successful response is only a head. So is a refusal, whose body nobody reads.
        case connect
        /// A response with status 101 is only a head.
        case upgrade
    }

    private enum Stage {
        case statusLine
        case fields
        /// Reads so many bytes of a body.
        case body(Int)
        case chunkSize
        /// Reads a chunk of so many bytes.
        case chunk(Int)
        case trailer
        case untilClosed
        case complete
    }

    /// What a head says about the rest.
    private struct Head {
        var status = 0
        var isVersion11 = true
        /// Where the lines of the fields are.
        var fields = 0..<0
        var lengths = 0
        /// The last length; `nil` if it is not a number.
        var length: Int?
        var codings = 0
        var isChunked = false
        /// The options of the connection.
        var (isClose, isKeepAlive, isUpgrade) = (false, false, false)
    }

    /// The longest head, with the interim responses before it, bytes. As long is what surrounds the chunks of a body.
    static let longestHead = 16 * 1024

    private let request: Request
    private let longestBody: Int
    private var stage = Stage.statusLine
    private var head = Head()
    /// The response as received.
    private var bytes: [UInt8] = []
    /// The end of what was read.
    private var position = 0
    /// No line ends between ``position`` and here.
    private var searched = 0
    /// The content of the chunks.
    private var chunks: [UInt8] = []

    /// - Parameter longestBody: Bytes.
    init(to request: Request = .get, longestBody: Int = HTTPRequest.usualBody) {
        self.request = request
        self.longestBody = longestBody
    }

    /// Whether no byte was received.
    var isEmpty: Bool { bytes.isEmpty }

    /// The bytes after the response, once it is complete.
    var rest: ArraySlice<UInt8> { bytes[position...] }

    /// Whether another request can be sent after the response: the server keeps the connection open, and sent nothing more.
    var keepsConnection: Bool {
        guard case .complete = stage, rest.isEmpty else { return false }
        return !head.isClose && (head.isVersion11 || head.isKeepAlive)
    }

    /// Whether the server changes to another protocol on this connection.
    var isUpgrade: Bool { head.isUpgrade }

    // MARK: - Reading

    /// Adds bytes.
    /// - Returns: The response, once it is complete. Nothing must be added afterwards.
    /// - Throws: ``HTTPError/malformed(_:)`` and ``HTTPError/tooLong(limit:)``. The parser can't be used afterwards.
    mutating func take(_ new: some Collection<UInt8>) throws(HTTPError) -> HTTPResponse? {
        if case .complete = stage { return nil }
        bytes.append(contentsOf: new)
        while true {
            switch stage {
            case .statusLine:
                guard let line = try headLine() else { return nil }
                try readStatus(line)
            case .fields:
                guard let line = try headLine() else { return nil }
                if !line.isEmpty { try readField(line) } else if let response = try endHead() { return response }
            case .body(let length):
                guard bytes.count - position >= length else { return nil }
                return response(bytes[position..<position + length], end: position + length)
            case .chunkSize:
                guard let line = try chunkLine() else { return nil }
                stage = try chunk(line)
            case .chunk(let size):
                guard bytes.count - position >= size + 2 else { return nil }
                try takeChunk(size)
            case .trailer:
                guard let line = try chunkLine() else { return nil }
                if line.isEmpty { return response(chunks[...], end: position) }
                guard HTTPField(line, in: bytes.span) != nil else { throw .malformed("a trailer that is not valid") }
            case .untilClosed:
                guard bytes.count - position <= longestBody else { throw .tooLong(limit: longestBody) }
                return nil
            case .complete: return nil
            }
        }
    }

    /// The response that ends with the connection; `nil` if it is not complete.
    mutating func closed() -> HTTPResponse? {
        guard case .untilClosed = stage else { return nil }
        // Whatever its version, the connection is over.
        head.isClose = true
        return response(bytes[position...], end: bytes.count)
    }

    private mutating func response(_ body: ArraySlice<UInt8>, end: Int) -> HTTPResponse {
        (stage, position) = (.complete, end)
        return HTTPResponse(status: head.status, fields: HTTPFields(bytes[head.fields]), body: body)
    }

    /// The next line without its end; `nil` if it is not complete.
    private mutating func line() throws(HTTPError) -> Range<Int>? {
        guard let end = bytes.span.lineFeed(from: searched) else {
            searched = bytes.count
            return nil
        }
        guard end > position, bytes[end - 1] == UInt8(ascii: "\r") else { throw .malformed("a line without CR LF") }
        let line = position..<end - 1
        (position, searched) = (end + 1, end + 1)
        return line
    }

    // MARK: - The head

    private mutating func headLine() throws(HTTPError) -> Range<Int>? {
        let line = try line()
        // An incomplete line counts.
        guard (line == nil ? bytes.count : position) <= Self.longestHead else {
            throw .malformed("a head of more than \(Self.longestHead) bytes")
        }
        return line
    }

    private mutating func readStatus(_ line: Range<Int>) throws(HTTPError) {
        let text = bytes[line]
        let digits = text.dropFirst(9).prefix(3)
        guard text.starts(with: "HTTP/1.".utf8), text.count >= 12, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            [0x30, 0x31].contains(text[line.lowerBound + 7]), text[line.lowerBound + 8] == 0x20,
            text.count == 12 || text[line.lowerBound + 12] == 0x20, bytes.span.isText(line)
        else { throw .malformed("no status line of HTTP/1.1") }
        head = Head()
        head.isVersion11 = text[line.lowerBound + 7] == 0x31
        head.status = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        head.fields = position..<position
        guard head.status >= 100 else { throw .malformed("status \(head.status)") }
        stage = .fields
    }

    private mutating func readField(_ line: Range<Int>) throws(HTTPError) {
        guard let field = HTTPField(line, in: bytes.span) else { throw .malformed("a field that is not valid") }
        head.fields = head.fields.lowerBound..<position
        let value = field.value
        if bytes.span.holds("content-length", in: field.name) {
            head.lengths += 1
            head.length = number(value, radix: 10)
        } else if bytes.span.holds("transfer-encoding", in: field.name) {
            head.codings += 1
            // Some readers do not take a tab for white space here.
            head.isChunked = bytes.span.holds("chunked", in: value) && !bytes[line].contains(UInt8(ascii: "\t"))
        } else if bytes.span.holds("connection", in: field.name) {
            for option in bytes[value].split(separator: UInt8(ascii: ",")) {
                let option = bytes.span.trimmed(option.indices)
                if bytes.span.holds("close", in: option) { head.isClose = true }
                if bytes.span.holds("keep-alive", in: option) { head.isKeepAlive = true }
                if bytes.span.holds("upgrade", in: option) { head.isUpgrade = true }
            }
        }
    }

    /// The head is complete: determines what follows.
    /// - Returns: The response if nothing does.
    private mutating func endHead() throws(HTTPError) -> HTTPResponse? {
        let end = position
        switch (request, head.status) {
        case (.upgrade, 101), (.connect, 200...), (_, 204), (_, 304): return response([], end: end)
        case (_, 101): throw .malformed("status 101, which was not requested")
        case (_, 100..<200): stage = .statusLine
        default: stage = try body()
        }
        return nil
    }

    private func body() throws(HTTPError) -> Stage {
        if head.codings > 0 {
            // Without a request for it, HTTP/1.1 allows only "chunked", and HTTP/1.0 has no codings (RFC 9112, section 6.1).
            guard head.codings == 1, head.isChunked, head.isVersion11 else {
                throw .malformed("a Transfer-Encoding that was not requested")
            }
            guard head.lengths == 0 else { throw .malformed("a length beside chunks") }
            return .chunkSize
        }
        guard head.lengths > 0 else { return .untilClosed }
        guard head.lengths == 1, let length = head.length else {
            throw .malformed("two lengths, or one that is no number")
        }
        guard length <= longestBody else { throw .tooLong(limit: longestBody) }
        return .body(length)
    }

    // MARK: - Chunks

    private mutating func chunkLine() throws(HTTPError) -> Range<Int>? {
        // The second term is room for what surrounds the chunks.
        guard bytes.count - head.fields.upperBound <= longestBody + Self.longestHead else {
            throw .tooLong(limit: longestBody)
        }
        return try line()
    }

    /// Reads the line in front of a chunk. Extensions are ignored (RFC 9112, section 7.1.1).
    private func chunk(_ line: Range<Int>) throws(HTTPError) -> Stage {
        let digits = bytes[line].prefix { $0 != UInt8(ascii: ";") }.indices
        guard let size = number(digits, radix: 16), bytes.span.isText(line) else {
            throw .malformed("a size of a chunk that is not valid")
        }
        guard size <= longestBody - chunks.count else { throw .tooLong(limit: longestBody) }
        return size > 0 ? .chunk(size) : .trailer
    }

    private mutating func takeChunk(_ size: Int) throws(HTTPError) {
        let end = position + size
        guard bytes[end] == UInt8(ascii: "\r"), bytes[end + 1] == UInt8(ascii: "\n") else {
            throw .malformed("a chunk without its end")
        }
        chunks += bytes[position..<end]
        (stage, position, searched) = (.chunkSize, end + 2, end + 2)
    }

    /// A number without a sign.
    private func number(_ range: Range<Int>, radix: Int) -> Int? {
        guard let first = bytes[range].first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-") else { return nil }
        return Int(String(decoding: bytes[range], as: UTF8.self), radix: radix)
    }
}
