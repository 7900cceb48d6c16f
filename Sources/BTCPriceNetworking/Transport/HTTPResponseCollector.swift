import NIOCore
import NIOHTTP1

/// Assembles the decoded parts of one response: a pure value.
///
/// It rejects ambiguous responses that NIOHTTP1 accepts.
struct HTTPResponseCollector {
    /// The longest body, bytes.
    private let longestBody: Int
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []

    init(longestBody: Int = HTTPRequest.usualBody) {
        self.longestBody = longestBody
    }

    /// Adds a part of the response.
    /// - Returns: The response, once it is complete.
    /// - Throws: ``HTTPError/malformed(_:)`` and ``HTTPError/tooLong(limit:)``.
    mutating func take(_ part: HTTPClientResponsePart) throws(HTTPError) -> HTTPResponse? {
        switch part {
        case .head(let head):
            try check(head)
            self.head = head
            return nil
        case .body(let bytes):
            guard body.count + bytes.readableBytes <= longestBody else { throw .tooLong(limit: longestBody) }
            body.append(contentsOf: bytes.readableBytesView)
            return nil
        case .end:
            guard let head else { throw .malformed("a body without a head") }
            return HTTPResponse(status: Int(head.status.code), headers: head.headers, body: body)
        }
    }

    private func check(_ head: HTTPResponseHead) throws(HTTPError) {
        guard head.status.code >= 200 else { throw .malformed("status \(head.status.code), which is not final") }
        let codings = head.headers[canonicalForm: "transfer-encoding"]
        // HTTP/1.1 allows only "chunked" without a request for it, and HTTP/1.0 has no codings (RFC 9112, section 6.1).
        guard codings.isEmpty || (codings.count == 1 && isChunked(head) && head.version != .http1_0) else {
            throw .malformed("a Transfer-Encoding that was not requested")
        }
        if let length = head.headers.first(name: "content-length").flatMap({ Int($0) }), length > longestBody {
            throw .tooLong(limit: longestBody)
        }
    }

    private func isChunked(_ head: HTTPResponseHead) -> Bool {
        head.headers[canonicalForm: "transfer-encoding"].first?.lowercased() == "chunked"
    }

    /// Whether the connection can be reused: the server keeps it open, and sent nothing after the response.
    func keepsConnection(_ meter: ResponseMeter) -> Bool {
        let connection = head?.headers[canonicalForm: "connection"] ?? []
        guard let head, head.isKeepAlive, !connection.contains(where: { $0.lowercased() == "close" }) else {
            return false
        }
        return isChunked(head) ? meter.endsWithEmptyLine : meter.body == body.count
    }
}
