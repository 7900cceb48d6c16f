import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import BTCPriceNetworking

/// A response reads the same however its bytes are cut, and nothing is kept without end. The input: how many cuts, the cuts, the stream.
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

/// What the handlers of a connection make of the pieces.
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
    // A channel that is not closed is kept for ever.
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    do {
        try channel.pipeline.syncOperations.addHandlers([
            meter, HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder()),
        ])
        try channel.writeOutbound(
            HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
        for piece in pieces {
            let written = Result { try channel.writeInbound(ByteBuffer(bytes: piece)) }
            // An error behind a response comes after it.
            if let response = try response() { return response }
            _ = try written.get()
        }
        _ = try channel.finish()
        return try response() ?? .refused
    } catch {
        return .refused
    }
}
