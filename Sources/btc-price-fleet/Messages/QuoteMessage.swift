import BTCPriceCore
import BTCPriceSocket

/// The message of a quote topic: the state as `btcctl current --json` prints it, and fields to date it and to refuse a repetition.
struct QuoteMessage: Sendable, Hashable {
    /// The maximum size of a message, bytes.
    static let longest = 16_384

    var state: StateMessage
    /// The publisher's name, which is also in the topic.
    var publisher: String
    /// Changes at every start of the publisher.
    var bootID: String
    /// Starts at 1 at every start of the publisher, and increases by one with each message.
    var sequence: Int64
    /// When it was published, by the publisher's wall clock.
    var publishedAt: Timestamp
    /// The time between two messages, milliseconds.
    var interval: Int64
    /// The age of the price when it was published, milliseconds.
    var age: Int64

    /// The message as JSON.
    /// - Parameter now: The publisher's clocks.
    func payload(at now: ObservationTime) -> [UInt8] {
        var object = state.json(at: now)
        object["publisher"] = .string(publisher)
        object["bootId"] = .string(bootID)
        object["sequence"] = .integer(sequence)
        object["publishedAt"] = .integer(publishedAt.milliseconds)
        object["intervalMs"] = .integer(interval)
        return Array(JSON.object(object).text.utf8)
    }
}

extension QuoteMessage {
    /// Reads a message. Unknown fields are ignored.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type, or if the payload is too long or not a JSON object.
    init(payload: [UInt8]) throws(JSONFieldError) {
        guard payload.count <= Self.longest, let json = try? JSONValue(parsing: payload[...]), json.objectValue != nil
        else { throw JSONFieldError(field: "") }
        self.init(
            state: try StateMessage(json: json), publisher: try json.required("publisher", .text),
            bootID: try json.required("bootId", .text.only { (1...64).contains($0.utf8.count) }),
            sequence: try json.required("sequence", .integer.only { $0 > 0 }),
            publishedAt: try json.required("publishedAt", .time),
            interval: try json.optional("intervalMs", .interval) ?? 1000,
            age: try json.optional("ageMs", .milliseconds.only { $0 >= 0 }) ?? 0)
    }
}
