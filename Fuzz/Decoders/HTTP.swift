import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import BTCPriceNetworking

/// Reads an HTTP response. The result does not depend on how the bytes are cut, no body exceeds the limit, and NIOHTTP1 reads nothing
/// else from them. The input: the number of cuts, the cuts, the stream.
func httpResponse(_ input: [UInt8]) {
    let (stream, pieces) = cut(input)
    let whole = read([stream])
    hold(read(pieces) == whole, "cut otherwise it is not \(whole)")

    guard case .response(let status, let body) = whole else { return }
    hold((200...999).contains(status), "status \(status)")
    hold(body.count <= HTTPRequest.usualBody, "a body of \(body.count) bytes")
    let other = readByNIO(stream)
    hold(other == .refused || other == whole, "NIOHTTP1 reads \(other)")
}

private enum Reading: Equatable {
    case response(Int, [UInt8])
    case refused
}

/// The response that a connection reads from the pieces.
private func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
    var parser = HTTPResponseParser()
    do throws(HTTPError) {
        for piece in pieces {
            if let response = try parser.take(piece) { return .response(response.status, Array(response.body)) }
        }
    } catch {
        return .refused
    }
    return parser.closed().map { .response($0.status, Array($0.body)) } ?? .refused
}

private func readByNIO(_ stream: ArraySlice<UInt8>) -> Reading {
    let channel = EmbeddedChannel()
    // A channel that is not closed is never freed.
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    do {
        try channel.pipeline.syncOperations.addHandlers([
            HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()),
        ])
        try channel.writeOutbound(
            HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
        // What was read before an error counts.
        _ = Result { try channel.writeInbound(ByteBuffer(bytes: stream)) }
        _ = Result { try channel.finish() }
        var (status, body): (Int, [UInt8]) = (0, [])
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head(let head): status = Int(head.status.code)
            case .body(let bytes): body += bytes.readableBytesView
            case .end where status >= 200: return .response(status, body)
            case .end: break
            }
        }
    } catch {}
    return .refused
}
