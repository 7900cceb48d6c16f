@testable import BTCPriceSocket

/// Reads a JSON value. Printed and read again, it is the same value, and the text contains no NUL.
func json(_ input: [UInt8]) {
    guard let value = accepted({ () throws(JSONError) in JSON(try JSONValue(parsing: input[...])) }) else { return }
    for layout in [JSON.Layout.compact, .lines] {
        var writer = JSONWriter(layout)
        writer.write(value)
        let printed = writer.bytes
        hold(!printed.contains(0), "a NUL in what was printed")
        let again = accepted { () throws(JSONError) in JSON(try JSONValue(parsing: printed[...])) }
        hold(again == value, "\(value) was read again as \(String(describing: again))")
    }
}

/// Reads a text for a comparison with another reader. Returns the value as compact text, or an empty text if it is refused.
func jsonText(_ input: [UInt8]) -> String {
    accepted { () throws(JSONError) in JSON(try JSONValue(parsing: input[...])) }?.text ?? ""
}

/// Reads messages from a stream in pieces. They are the texts between its NULs, up to the first one that is too long. The input: the
/// limit, the number of repetitions of the stream, the number of cuts, the cuts, the stream.
func framing(_ input: [UInt8]) {
    var draw = Draw(input)
    let limit = draw.byte() * 4
    let (repeats, cuts) = (1 + draw.byte() % 32, draw.byte() % 16)
    var sizes = (0..<cuts).map { _ in 1 + draw.byte() * 32 }
    let stream = Array(repeatElement(draw.rest, count: repeats).joined())

    let pieces = stream.split(separator: 0, omittingEmptySubsequences: false)
    let expected = pieces.dropLast().prefix { $0.count <= limit }
    let isTooLong = pieces.contains { $0.count > limit }

    var buffer = MessageBuffer(limit: limit)
    var found: [[UInt8]] = []
    var rest = stream[...]
    var wasTooLong = false
    while !rest.isEmpty, !wasTooLong {
        let size = sizes.popLast() ?? rest.count
        buffer.append(rest.prefix(size))
        rest = rest.dropFirst(size)
        do throws(MessageError) {
            while let message = try buffer.next() { found.append(Array(message)) }
        } catch {
            wasTooLong = true
        }
    }
    hold(wasTooLong == isTooLong, "too long: \(wasTooLong) instead of \(isTooLong)")
    hold(found.elementsEqual(expected, by: { $0.elementsEqual($1) }), "other messages than between the NULs")
    hold(wasTooLong || buffer.count == pieces.last?.count ?? 0, "\(buffer.count) bytes are left")
    // The client reads its replies from such a stream.
    for message in found.prefix(4) { reply(message) }
}

/// Reads a call. Encoded and read again, it is the same, and so is the server's reading of it.
func call(_ input: [UInt8]) {
    guard let call = accepted({ () throws(MessageError) in try Call(decoding: input[...]) }) else { return }
    let again = accepted { () throws(MessageError) in try Call(decoding: unframed(call.encoded())) }
    // Only the space in empty parameters is lost.
    hold(
        again.map { $0.encoded() == call.encoded() && JSON($0.parameters) == JSON(call.parameters) } == true,
        "\(call) was read again as \(String(describing: again))")
    switch PriceCall.read(call) {
    case nil: break
    case .failure(let refusal)?: checkReply(refusal.reply)
    case .success(let read)?:
        hold(accepted { try PriceCall.read(read.call)?.get() } == read, "\(read) is called otherwise")
    }
    checkReply(ServiceInterface.reply(to: call))
}

/// Reads a reply. Encoded and read again, it is the same.
func reply(_ input: [UInt8]) {
    guard let reply = accepted({ () throws(MessageError) in try Reply(decoding: input[...]) }) else { return }
    checkReply(reply)
    let result = accepted { () throws(ClientError) in try reply.printableResult() }
    hold((result == nil) == (reply.error != nil), "\(reply) is taken for \(String(describing: result))")
}

private func checkReply(_ reply: Reply) {
    let again = accepted { () throws(MessageError) in try Reply(decoding: unframed(reply.encoded())) }
    hold(again == reply, "\(reply) was read again as \(String(describing: again))")
}

/// One message without its NUL, which must be its only NUL.
private func unframed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    hold(bytes.firstIndex(of: 0) == bytes.count - 1, "a NUL within the message")
    return bytes.dropLast()
}
