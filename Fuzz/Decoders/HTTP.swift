import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import BTCPriceNetworking

/// Reads an HTTP response. The result does not depend on how the bytes are cut, and no body exceeds the limit. The input: the number of
/// cuts, the cuts, the stream.
func httpResponse(_ input: [UInt8]) {
    let (stream, pieces) = cut(input)
    let whole = read([stream])
    hold(read(pieces) == whole, "cut otherwise it is not \(whole)")

    guard case .response(let status, let body) = whole else { return }
    hold((200...999).contains(status), "status \(status)")
    hold(body.count <= HTTPRequest.usualBody, "a body of \(body.count) bytes")
}

private enum Reading: Equatable {
    case response(Int, [UInt8])
    case refused
}

/// The response that the handlers of a connection read from the pieces.
private func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
    let (channel, meter) = (EmbeddedChannel(), ResponseMeter())
    var collector = HTTPResponseCollector()
    func response() throws -> Reading? {
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            if let response = try collector.take(part) {
                _ = collector.keepsConnection(meter)
                return .response(response.status, response.body)
            }
        }
        return nil
    }
    meter.reset()
    // A channel that is not closed is never freed.
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    do {
        try channel.pipeline.syncOperations.addHandlers([
            meter, HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()),
        ])
        try channel.writeOutbound(
            HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
        for piece in pieces {
            let written = Result { try channel.writeInbound(ByteBuffer(bytes: piece)) }
            // A response before an error counts.
            if let response = try response() { return response }
            _ = try written.get()
        }
        _ = try channel.finish()
        return try response() ?? .refused
    } catch {
        return .refused
    }
}
