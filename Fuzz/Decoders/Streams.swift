import BTCPriceSocket
import NIOCore
import NIOEmbedded
import NIOWebSocket

@testable import BTCPriceCore
@testable import BTCPriceNetworking

/// Reads WebSocket frames. The result does not depend on how the bytes are cut, and no message exceeds the limit. The input: the number
/// of cuts, the cuts, the bytes.
func webSocket(_ input: [UInt8]) {
    let (stream, pieces) = cut(input)
    let whole = frames([stream])
    hold(frames(pieces) == whole, "cut otherwise it is not \(whole)")
    for text in whole.texts {
        hold(text.utf8.count <= WebSocketReader.longestMessage, "a message of \(text.utf8.count) bytes")
    }
}

private struct Frames: Equatable {
    var texts: [String] = []
    var controls: [WebSocketReader.Event] = []
    var isRefused = false
}

/// The frames that the handlers of a connection read from the pieces.
private func frames(_ pieces: [ArraySlice<UInt8>]) -> Frames {
    let channel = EmbeddedChannel()
    var (reader, frames) = (WebSocketReader(), Frames())
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    func take() throws {
        while let frame = try channel.readInbound(as: WebSocketFrame.self) {
            switch try reader.take(frame) {
            case .text(let text): frames.texts.append(String(buffer: text))
            case .nothing: break
            case let control: frames.controls.append(control)
            }
        }
    }
    do {
        try channel.pipeline.syncOperations.addHandler(
            ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: WebSocketReader.longestMessage)))
        for piece in pieces {
            let written = Result { try channel.writeInbound(ByteBuffer(bytes: piece)) }
            // Frames before an error count.
            try take()
            _ = try written.get()
        }
    } catch {
        frames.isRefused = true
    }
    return frames
}

/// Passes a message of a stream to the state machine. It never shows a price that is not in a message.
func streamMessage(_ input: [UInt8], of source: StreamSource, _ markets: [Market]) {
    guard let value = try? JSONValue(parsing: input[...]) else { return }
    let message: StreamMessage
    do throws(PriceLoadingError) {
        message = try source.read(value, source.named(markets))
    } catch {
        hold(!error.description.unicodeScalars.contains { $0.properties.generalCategory == .control }, "\(error)")
        return
    }
    let now = ObservationTime(
        wall: Timestamp(milliseconds: 1_790_000_000_000), boottime: BootTime(milliseconds: 5_000_000))
    var machine = StreamMachine(source, urls: [source.baseURL], markets: markets)
    _ = machine.start(at: now.boottime)
    _ = machine.opened(at: now.boottime)
    let actions = machine.received(message, at: now.boottime) + machine.received(message, at: now.boottime + 1)
    for case .price(let price) in actions {
        guard case .trade(let trade) = message else { return hold(false, "a price of no trade") }
        hold(price.value == trade.value && price.market == trade.market, "another price than in \(trade)")
        hold(markets.contains(price.market), "a price of \(price.market), which nobody wants")
        var book = ObservationBook(currency: price.market.currency ?? .usd)
        if (try? book.record([price], of: price.market, at: now)) != nil {
            hold(book.currency.prices.contains(price.value), "\(price.value) was taken")
        }
    }
    _ = machine.timerFired(at: now.boottime + 100_000, jitter: 0.5)
    hold(machine.nextDeadline.map { $0 > now.boottime + 100_000 } ?? true, "a deadline that is over")
}
