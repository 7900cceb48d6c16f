@testable import BTCPriceCore
@testable import BTCPriceSocket

/// Serves a client. The replies do not depend on how its bytes are cut. The input: the limits, the cuts, the stream.
func connection(_ input: [UInt8]) {
    var draw = Draw(input)
    let limits = ServerLimits(connections: 8, messageBytes: 64 + draw.byte() * 4)
    let cuts = draw.byte() % 16
    let sizes = (0..<cuts).map { _ in 1 + draw.byte() }
    let (whole, parts) = (replies(to: draw.rest, sizes: [], limits), replies(to: draw.rest, sizes: sizes, limits))
    hold(whole.starts(with: parts) || parts.starts(with: whole), "cut otherwise, the replies are others")
}

/// The replies to a stream in pieces of these sizes, for a client that reads everything at once.
private func replies(to stream: ArraySlice<UInt8>, sizes: [Int], _ limits: ServerLimits) -> [UInt8] {
    var (rest, sizes) = (stream, sizes)
    var cache = ReplyCache(instance: "i", limits: limits)
    cache.show([(held, 1)], of: cache.instance, version: 1)
    var connection = Connection(limits: limits, at: .boot)
    var written: [UInt8] = []
    while !rest.isEmpty, connection.wantsInput {
        let piece = Array(rest.prefix(sizes.popLast() ?? rest.count))
        rest = rest.dropFirst(piece.count)
        connection.received(piece[...], at: .boot)
        var request = connection.proceed(replies: &cache, at: .boot)
        while connection.wantsOutput {
            let part = connection.withOutput { Array($0) }
            written += part
            connection.wrote(part.count, at: .boot)
            if request == nil { request = connection.proceed(replies: &cache, at: .boot) }
        }
        if request != nil { break }
    }
    return written
}

private let held = PriceState(
    ShownPrice(
        PriceQuote(
            value: 68_901, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance", market: "BTC/USDT"
        ), observedBoottime: .boot,
        confirmation: .single),
    TickState(number: 1, freshness: .fresh), currency: "USD")
