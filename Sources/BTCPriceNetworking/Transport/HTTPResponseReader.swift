/// Reads one answer from the bytes of a connection as they come: a pure value.
///
/// It takes what RFC 9112 allows a server to send to a GET, and nothing else: what could be read in two ways ends the connection
/// instead of being guessed at, since the next answer on it would be taken from the wrong place.
struct HTTPResponseReader {
    /// The longest head, and the longest line in a chunked body, bytes.
    static let longestHead = 16 * 1024
    /// The longest body, bytes. The largest real one of an exchange we ask has under three thousand.
    static let longestBody = 64 * 1024

    private enum Stage {
        case head
        case body(length: Int)
        case bodyUntilClose
        case chunkSize
        case chunk(left: Int)
        case trailers
        case end
    }

    /// Whether it is the answer to CONNECT: it has ended with its head.
    private let isTunnel: Bool
    private var stage = Stage.head
    /// What came and was not consumed yet.
    private var bytes: [UInt8] = []
    private var status = 0
    private var fields: [UInt8] = []
    private var lines: [FieldLines.Line] = []
    private var body: [UInt8] = []
    private var isLastConnection = false

    /// - Parameter isTunnel: Whether the answer is one to CONNECT.
    init(isTunnel: Bool = false) {
        self.isTunnel = isTunnel
    }

    /// Whether anything has come.
    var hasBegun: Bool {
        if case .head = stage { !bytes.isEmpty } else { true }
    }

    /// Whether the connection can be asked again once the answer is whole: the server keeps it, and has sent nothing after it.
    var keepsConnection: Bool { !isLastConnection && bytes.isEmpty }

    /// Takes what has come.
    /// - Returns: The answer, once it is whole.
    /// - Throws: ``HTTPError/malformed(_:)`` and ``HTTPError/tooLong(limit:)``.
    mutating func take(_ new: some Collection<UInt8>) throws(HTTPError) -> HTTPAnswer? {
        bytes += new
        while true {
            let isFurther =
                switch stage {
                case .head: try takeHead()
                case .body(let length): takeBody(length)
                case .bodyUntilClose: try takeAll()
                case .chunkSize: try takeChunkSize()
                case .chunk(let left): try takeChunk(left)
                case .trailers: try takeTrailer()
                case .end: false
                }
            if case .end = stage { return HTTPAnswer(status: status, body: body, fields: fields, lines: lines) }
            if !isFurther { return nil }
        }
    }

    /// The server has closed its side.
    /// - Returns: The answer, where the end of the connection is how it ends.
    /// - Throws: ``HTTPError/closedEarly``.
    mutating func end() throws(HTTPError) -> HTTPAnswer {
        guard case .bodyUntilClose = stage else { throw .closedEarly }
        return HTTPAnswer(status: status, body: body, fields: fields, lines: lines)
    }

    // MARK: - The head

    private mutating func takeHead() throws(HTTPError) -> Bool {
        guard let end = bytes.firstEmptyLine else {
            if bytes.count > Self.longestHead { throw .malformed("a head of more than \(Self.longestHead) bytes") }
            return false
        }
        guard end <= Self.longestHead else { throw .malformed("a head of more than \(Self.longestHead) bytes") }
        guard let statusEnd = bytes.firstLineEnd(from: 0), bytes[..<statusEnd].isOneLine,
            let line = StatusLine(bytes, end: statusEnd)
        else { throw .malformed("no status line of HTTP/1.1") }
        fields = Array(bytes[statusEnd + 2..<end + 2])
        bytes.removeFirst(end + 4)
        status = line.status
        // To CONNECT a success has no body, whatever it says (RFC 9110, section 9.3.6), and of a refusal the status is enough.
        if isTunnel, status >= 200 {
            stage = .end
            return true
        }
        try takeLines()
        // Interim answers announce the final one (RFC 9110, section 15.2); nobody asked to switch protocols.
        guard status >= 200 else {
            if status == 101 { throw .malformed("another protocol, which nobody asked for") }
            return true
        }
        try takeFraming(line)
        return true
    }

    private mutating func takeLines() throws(HTTPError) {
        var found = FieldLines(fields)
        lines.removeAll()
        lines.reserveCapacity(16)
        while let line = found.next() { lines.append(line) }
        if found.isMalformed { throw .malformed("a line in the head that is no field") }
    }

    /// How long the body is (RFC 9112, section 6.3), and whether the connection stays (section 9.3).
    private mutating func takeFraming(_ statusLine: StatusLine) throws(HTTPError) {
        var length: Int?
        var isChunked = false
        var (isKept, isClosed) = (statusLine.isOneOne, false)
        for line in lines {
            if line.isNamed("content-length", in: fields) {
                guard let number = Self.number(fields[line.value], radix: 10), length == nil || length == number else {
                    throw .malformed("a Content-Length that is none")
                }
                length = number
            } else if line.isNamed("transfer-encoding", in: fields) {
                guard fields.isText("chunked", at: line.value), !isChunked, statusLine.isOneOne else {
                    throw .malformed("a Transfer-Encoding that was not asked for")
                }
                isChunked = true
            } else if line.isNamed("connection", in: fields) {
                for word in fields[line.value].split(separator: UInt8(ascii: ",")) {
                    let word = word.trimmed
                    if fields.isText("close", at: word) { isClosed = true }
                    if fields.isText("keep-alive", at: word) { isKept = true }
                }
            }
        }
        if isChunked, length != nil { throw .malformed("both a Content-Length and a Transfer-Encoding") }
        isLastConnection = isClosed || !isKept
        if status == 204 || status == 304 {
            stage = .end
        } else if isChunked {
            stage = .chunkSize
        } else if let length {
            guard length <= Self.longestBody else { throw .tooLong(limit: Self.longestBody) }
            stage = length == 0 ? .end : .body(length: length)
        } else {
            isLastConnection = true
            stage = .bodyUntilClose
        }
    }

    // MARK: - The body

    private mutating func takeBody(_ length: Int) -> Bool {
        guard bytes.count >= length else { return false }
        body = Array(bytes[..<length])
        bytes.removeFirst(length)
        stage = .end
        return true
    }

    private mutating func takeAll() throws(HTTPError) -> Bool {
        try append(bytes.count)
        return false
    }

    private mutating func takeChunkSize() throws(HTTPError) -> Bool {
        guard let end = try lineEnd() else { return false }
        // Extensions mean nothing to us, and white space may stand before one (RFC 9112, section 7.1.1).
        let digits = bytes[..<end].prefix { $0 != UInt8(ascii: ";") }
        guard let size = Self.number(bytes[..<digits.trimmed.upperBound], radix: 16) else {
            throw .malformed("the size of a chunk that is no number")
        }
        bytes.removeFirst(end + 2)
        stage = size == 0 ? .trailers : .chunk(left: size)
        return true
    }

    private mutating func takeChunk(_ left: Int) throws(HTTPError) -> Bool {
        // With the line end after it: it is not left between two reads.
        guard left <= Self.longestBody - body.count else { throw .tooLong(limit: Self.longestBody) }
        guard bytes.count >= left + 2 else { return false }
        guard bytes[left] == UInt8(ascii: "\r"), bytes[left + 1] == UInt8(ascii: "\n") else {
            throw .malformed("a chunk longer than it said")
        }
        try append(left)
        bytes.removeFirst(2)
        stage = .chunkSize
        return true
    }

    private mutating func takeTrailer() throws(HTTPError) -> Bool {
        guard let end = try lineEnd() else { return false }
        if end == 0 {
            stage = .end
        } else {
            var found = FieldLines(Array(bytes[..<(end + 2)]))
            if found.next() == nil { throw .malformed("a line after the body that is no field") }
        }
        bytes.removeFirst(end + 2)
        return true
    }

    private mutating func append(_ count: Int) throws(HTTPError) {
        guard body.count + count <= Self.longestBody else { throw .tooLong(limit: Self.longestBody) }
        body += bytes[..<count]
        bytes.removeFirst(count)
    }

    private func lineEnd() throws(HTTPError) -> Int? {
        let end = bytes.firstLineEnd(from: 0)
        if (end ?? bytes.count) > Self.longestHead { throw .malformed("a line of more than \(Self.longestHead) bytes") }
        if let end, !bytes[..<end].isOneLine { throw .malformed("a line with a line end of another kind in it") }
        return end
    }

    /// Digits and nothing else; at most nine of them, more than any body may have.
    private static func number(_ digits: ArraySlice<UInt8>, radix: Int) -> Int? {
        guard (1...9).contains(digits.count) else { return nil }
        var number = 0
        for digit in digits {
            guard let value = Character(UnicodeScalar(digit)).hexDigitValue, value < radix else { return nil }
            number = number * radix + value
        }
        return number
    }
}

/// `HTTP/1.1 200 OK` (RFC 9112, section 4).
private struct StatusLine {
    let status: Int
    /// HTTP/1.1 or a later minor version; else HTTP/1.0.
    let isOneOne: Bool

    init?(_ bytes: [UInt8], end: Int) {
        guard end >= 12, bytes.isText("http/1.", at: 0..<7), bytes.starts(with: "HTTP".utf8),
            let minor = Self.digit(bytes[7]), bytes[8] == UInt8(ascii: " "), let hundreds = Self.digit(bytes[9]),
            hundreds > 0, let tens = Self.digit(bytes[10]), let ones = Self.digit(bytes[11]),
            end == 12 || bytes[12] == UInt8(ascii: " ")
        else { return nil }
        status = hundreds * 100 + tens * 10 + ones
        isOneOne = minor >= 1
    }

    private static func digit(_ byte: UInt8) -> Int? {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") ? Int(byte - UInt8(ascii: "0")) : nil
    }
}

extension [UInt8] {
    /// Where the first CR LF from a place on begins.
    fileprivate func firstLineEnd(from start: Int) -> Int? {
        let bytes = span
        var place = start
        while place + 1 < bytes.count {
            if bytes[place] == UInt8(ascii: "\r"), bytes[place + 1] == UInt8(ascii: "\n") { return place }
            place += 1
        }
        return nil
    }

    /// Where the CR LF begins that an empty line follows.
    fileprivate var firstEmptyLine: Int? {
        var start = 0
        while let end = firstLineEnd(from: start) {
            if end + 3 < count, self[end + 2] == UInt8(ascii: "\r"), self[end + 3] == UInt8(ascii: "\n") { return end }
            start = end + 2
        }
        return nil
    }
}
