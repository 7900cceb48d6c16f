package import BTCPriceCore

/// Something that went on for a time, as `GetEvents` returns it.
package struct EventMessage: Sendable, Hashable {
    /// ``Episode/Kind``; a newer daemon may have others.
    package var kind: String
    /// ISO 4217; `nil` if it concerns all.
    package var currency: String?
    /// A source, if it is about one.
    package var source: String?
    package var start: Timestamp
    /// `nil` while it goes on.
    package var end: Timestamp?
    /// How far a price was from the shown one, at most, in percent; `nil` for other kinds.
    package var worst: Price?
    /// By how much the clock was wrong when that was found, milliseconds; `nil` for other kinds.
    package var difference: Int64?
    /// How often it began within ``start`` and ``end``.
    package var count: Int64

    package init(_ episode: Episode) {
        let isClock = episode.subject.kind == .clock
        kind = episode.subject.kind.rawValue
        (currency, source) = (episode.subject.currency?.rawValue, episode.subject.source)
        start = Timestamp(milliseconds: episode.start * 1000)
        end = episode.end.map { Timestamp(milliseconds: $0 * 1000) }
        // Millionths are ten-thousandths of a percent.
        worst = isClock ? nil : episode.worst.map { Price($0, scale: 4) }
        difference = isClock ? episode.worst : nil
        count = episode.count
    }
}

extension EventMessage: JSONMessage {
    package static var blank: EventMessage { EventMessage(Episode(.init(.outage), start: 0)) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("kind", &kind, .text)
        try fields.optional("currency", &currency, .text)
        try fields.optional("source", &source, .text)
        try fields.required("start", &start, .time)
        try fields.optional("end", &end, .time)
        try fields.optional("worst", &worst, .decimal)
        try fields.optional("differenceMs", &difference, .milliseconds)
        try fields.required("count", &count, .integer.only { $0 > 0 })
    }
}
