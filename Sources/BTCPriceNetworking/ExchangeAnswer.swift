import AsyncHTTPClient
import BTCPriceCore
import NIOCore
import NIOHTTP1
import Synchronization

/// What an exchange is asked, again and again: taken apart once.
struct ExchangeQuestion: Sendable {
    /// The whole address.
    let url: String
    /// `nil` where the address is none.
    let request: HTTPClient.Request?
    /// As a resolver takes it: without the brackets of an IPv6 address.
    let host: String

    /// - Parameters:
    ///   - url: The whole address.
    ///   - headers: What is told beside who asks.
    init(_ url: String, headers: [(String, String)] = []) {
        self.url = url
        request = try? HTTPClient.Request(url: url, headers: HTTPHeaders([("Accept", "application/json")] + headers))
        host = request.map { String($0.host.drop { $0 == "[" }.prefix { $0 != "]" }) } ?? ""
    }
}

/// An exchange's answer, whole.
struct ExchangeAnswer: Sendable {
    var status: Int
    var retryAfter: String?
    /// The header of that name: the exchange's clock, where it tells it.
    var date: String?
    /// `Content-Encoding`, where there is one: none was asked for.
    var encoding: String?
    var body: [UInt8]
}

/// Puts an answer together from its parts, on the loop's thread.
final class AnswerCollector: HTTPClientResponseDelegate {
    private struct Parts {
        var head: HTTPResponseHead?
        var body: [UInt8] = []
    }

    private let parts = Mutex(Parts())

    func didReceiveHead(task: HTTPClient.Task<ExchangeAnswer>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        parts.withLock { $0.head = head }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<ExchangeAnswer>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let isTooLong = parts.withLock { parts in
            parts.body += buffer.readableBytesView
            return parts.body.count > ExchangeClient.longestBody
        }
        return isTooLong
            ? task.eventLoop.makeFailedFuture(NIOTooManyBytesError(maxBytes: ExchangeClient.longestBody))
            : task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<ExchangeAnswer>) throws -> ExchangeAnswer {
        let (head, body) = parts.withLock { ($0.head, $0.body) }
        guard let head else { throw HTTPClientError.remoteConnectionClosed }
        return ExchangeAnswer(
            status: Int(head.status.code), retryAfter: head.headers.first(name: "Retry-After"),
            date: head.headers.first(name: "Date"), encoding: head.headers.first(name: "Content-Encoding"), body: body)
    }
}
