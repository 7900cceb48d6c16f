public import BTCPriceCore

/// The reply to `GetPrice` in its commonest form, a fresh price of which nothing more is to be said, read from its very bytes.
///
/// It stands in the path of every `btcctl current`, where building the JSON, its messages and a `Decimal` costs more than asking does.
/// What is not byte for byte as the daemon writes it is not read here, and goes through ``Reply`` and ``StateMessage``; a test and
/// the fuzzer hold both to the same price and time.
public struct FreshReply: Sendable, Hashable {
    /// The exact decimal as ASCII: `68901.23`.
    public let value: [UInt8]
    /// When it was observed.
    public let timestamp: Timestamp

    /// - Parameter message: The reply, without its NUL.
    /// - Returns: `nil` for any other reply, a price in another currency than USD among them.
    public init?(_ message: ArraySlice<UInt8>) {
        var scan = ReplyScan(message)
        guard scan.take("{\"parameters\":{\"state\":{\"instance\":\""), scan.plainText(), scan.take("\",\"tick\":"),
            scan.integer() != nil, scan.take(",\"freshness\":\"fresh\",\"quote\":{\"value\":\""),
            let value = scan.decimal(), value.contains(where: { $0 > UInt8(ascii: "0") }),
            scan.take("\",\"currency\":\"USD\",\"timestamp\":"),
            let milliseconds = scan.integer(), scan.take(",\"source\":\""), scan.plainText(),
            scan.take("\",\"market\":\""), scan.plainText(), scan.take("\"},\"observedBoottime\":"),
            scan.integer() != nil, scan.take(",\"confirmation\":\""),
            scan.take("single") || scan.take("confirmed"),
            scan.take("\",\"failure\":null,\"warning\":null,\"consensus\":null,\"conversion\":null}}}"), scan.isAtEnd
        else { return nil }
        self.value = value
        timestamp = Timestamp(milliseconds: milliseconds)
    }
}

/// A walk over a message's bytes, each step of which succeeds or leaves the place where it is.
private struct ReplyScan {
    private let bytes: ArraySlice<UInt8>
    private var place: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        place = bytes.startIndex
    }

    var isAtEnd: Bool { place == bytes.endIndex }

    mutating func take(_ expected: StaticString) -> Bool {
        let length = expected.utf8CodeUnitCount
        guard bytes.endIndex - place >= length else { return false }
        for offset in 0..<length where bytes[place + offset] != expected.utf8Start[offset] { return false }
        place += length
        return true
    }

    /// Printable ASCII up to a quotation mark that nothing escapes.
    mutating func plainText() -> Bool {
        var end = place
        while end < bytes.endIndex, bytes[end] != UInt8(ascii: "\"") {
            guard (0x20...0x7E).contains(bytes[end]), bytes[end] != UInt8(ascii: "\\") else { return false }
            end += 1
        }
        place = end
        return end < bytes.endIndex
    }

    /// An integer that is not negative, of at most 14 digits: less than what is taken for a time
    /// (``Timestamp/possibleMilliseconds``).
    mutating func integer() -> Int64? {
        let end = digits(from: place)
        guard end > place, end - place <= 14, isCanonical(until: end) else { return nil }
        var number: Int64 = 0
        while place < end {
            number = number * 10 + Int64(bytes[place] - UInt8(ascii: "0"))
            place += 1
        }
        return number
    }

    /// A decimal of at most 38 digits, without sign and exponent.
    mutating func decimal() -> [UInt8]? {
        var end = digits(from: place)
        guard end > place, isCanonical(until: end) else { return nil }
        if end < bytes.endIndex, bytes[end] == UInt8(ascii: ".") {
            let fraction = end + 1
            end = digits(from: fraction)
            guard end > fraction else { return nil }
        }
        guard end - place <= 38 else { return nil }
        var text: [UInt8] = []
        text.reserveCapacity(end - place)
        while place < end {
            text.append(bytes[place])
            place += 1
        }
        return text
    }

    /// Whether no zero stands needlessly before the digits from here.
    private func isCanonical(until end: Int) -> Bool {
        bytes[place] != UInt8(ascii: "0") || end == place + 1
    }

    private func digits(from start: Int) -> Int {
        var end = start
        while end < bytes.endIndex, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[end]) { end += 1 }
        return end
    }
}
