import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// What went on, in words.
struct EventsText {
    let timestamps: TimestampFormatter

    init(timestamps: TimestampFormatter) {
        var timestamps = timestamps
        timestamps.hasSeconds = true
        self.timestamps = timestamps
    }

    /// A line for each event: when it began, how long it lasted, and what it was.
    func lines(_ events: [EventMessage], at now: ObservationTime) -> [String] {
        Table.lines(events.map { [timestamps.string(from: $0.start), Self.duration($0, at: now), Self.words($0)] })
    }

    /// How long it lasted; `-` if it takes no time.
    static func duration(_ event: EventMessage, at now: ObservationTime) -> String {
        let length = Duration.milliseconds(
            max(0, (event.end ?? now.wall).milliseconds - event.start.milliseconds))
        return Episode.Kind(rawValue: event.kind)?.isMoment == true && event.count == 1
            ? PriceTexts.placeholder : event.end == nil ? "for \(Table.text(length))" : Table.text(length)
    }

    private static func words(_ event: EventMessage) -> String {
        PriceTexts.event(
            event.kind, currency: event.currency, source: event.source, worst: event.worst,
            difference: event.difference, count: event.count)
    }
}
