@testable import HTTPTransport

/// An answer reads the same however its bytes are cut, and nothing is kept without end. The input: how many cuts, the cuts, the stream.
func httpAnswer(_ input: [UInt8]) {
    var draw = Draw(input)
    let cuts = draw.byte() % 16
    var sizes = (0..<cuts).map { _ in 1 + draw.byte() }
    let stream = draw.rest

    let whole = read([stream])
    var pieces: [ArraySlice<UInt8>] = []
    var rest = stream
    while let size = sizes.popLast(), !rest.isEmpty {
        pieces.append(rest.prefix(size))
        rest = rest.dropFirst(size)
    }
    hold(read(pieces + [rest]) == whole, "cut otherwise it is not \(whole)")

    guard case .answer(let answer) = whole else { return }
    hold((200...999).contains(answer.status), "status \(answer.status)")
    hold(answer.body.count <= HTTPResponseReader.longestBody, "a body of \(answer.body.count) bytes")
    for name in ["date", "retry-after", "content-encoding"] as [StaticString] {
        // What a header holds ends up in a log: it holds no line end that would begin another line.
        let isWhole = answer.field(name).map { !$0.utf8.contains(UInt8(ascii: "\n")) } ?? true
        hold(isWhole, "a line end in a field")
    }
}

private enum Reading: Equatable {
    case answer(HTTPAnswer)
    case refused
    case early
}

private func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
    var reader = HTTPResponseReader()
    do throws(HTTPError) {
        for piece in pieces {
            if let answer = try reader.take(piece) { return .answer(answer) }
        }
        return .answer(try reader.end())
    } catch {
        if case .closedEarly = error { return .early }
        return .refused
    }
}
