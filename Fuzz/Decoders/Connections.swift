import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import FoundationEssentials
import Varlink

@testable import BTCPriceServer

/// The short way to a fresh price says what the long way says, or nothing.
func freshReply(_ input: [UInt8]) {
    guard let fresh = FreshReply(input[...]) else { return }
    let reply = accepted { () throws(MessageError) in try Reply(decoding: input) }
    let state = reply?.parameters["state"]?.objectValue.flatMap { object in
        accepted { () throws(MessageFieldError) in try StateMessage(json: object).state }
    }
    let text = String(decoding: fresh.value, as: UTF8.self)
    hold(
        state?.quote?.value == Decimal(exactly: text) && state?.quote?.timestamp == fresh.timestamp,
        "\(fresh) of \(input)")
    hold(state?.freshness == .fresh && state?.failure == nil && state?.warning == nil, "more is to be said")
    let formatter = DollarFormatter()
    hold(
        formatter.string(fromDigits: fresh.value, currency: "USD")
            == state?.quote.map { formatter.string(from: $0.value, currency: "USD") }, "the price of \(text)")
}

/// What a client sends, cut at any points and read as slowly as it likes, is answered the same by the quick way and by the parser's;
/// and no more replies wait than may. The input: how much may wait, what is read each time, the cuts, the stream.
func connection(_ input: [UInt8]) {
    var draw = Draw(input)
    let limits = ServerLimits(
        connections: 8, connectionsPerUser: 8, messageBytes: 64 + draw.byte() * 4, queuedBytes: draw.byte() * 16)
    let (step, cuts) = (draw.byte() * 8, draw.byte() % 16)
    var sizes = (0..<cuts).map { _ in 1 + draw.byte() }
    var board = Board(
        instance: "i", service: ServiceInterface(info: Product.info, descriptions: [(PriceInterface.name, "")]),
        limits: limits)
    board.show(held, version: 1)
    var boards = [board, board]
    var connections = [true, false].map { Connection(limits: limits, at: 0, isQuick: $0) }
    var written: [[UInt8]] = [[], []]
    var rest = draw.rest
    while !rest.isEmpty, connections.allSatisfy(\.wantsInput) {
        let piece = Array(rest.prefix(sizes.popLast() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        var requests: [Connection.Request?] = []
        for index in 0..<2 {
            requests.append(connections[index].received(piece.span, board: &boards[index], at: 0))
            while connections[index].wantsOutput {
                let part = connections[index].withOutput { Array($0.prefix(max(1, step))) }
                written[index] += part
                connections[index].wrote(part.count, at: 0)
                // A slow reader takes one part of each; what waits is looked at again at the next piece.
                if step > 0, step < 256 { break }
            }
        }
        hold(
            requests[0] == requests[1],
            "one way asks \(String(describing: requests[0])), the other \(String(describing: requests[1]))")
        if requests[0] != nil { break }
    }
    hold(written[0] == written[1], "the ways answer differently")
    hold(boards[0].counts == boards[1].counts, "\(boards[0].counts) and \(boards[1].counts)")
    hold(connections[0].interest == connections[1].interest, "the ways want differently")
    hold(connections[0].isFinished == connections[1].isFinished, "the ways end differently")
}

private let held = PriceState(
    tick: 1, freshness: .fresh,
    quote: PriceQuote(
        value: 68_901, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance", market: "BTC/USDT"),
    observedBoottime: 0, confirmation: .single, failure: nil)
