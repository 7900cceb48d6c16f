/// Compares the venues' clocks with this machine's and measures how often each market trades, to detect old prices: a pure value.
///
/// If a venue's time differs from ours, the venue is wrong, unless most venues agree with it. Offsets are relative to CLOCK_BOOTTIME,
/// so they stay correct if our wall clock is set.
struct VenueClocks: Sendable {
    /// By venue: its wall clock minus our CLOCK_BOOTTIME, and the CLOCK_BOOTTIME of that observation, both in milliseconds.
    private var offsets: [String: (offset: Int64, at: Int64)] = [:]
    private var trades: [Market: FeedPosition] = [:]
    /// The usual time between two trades, in milliseconds.
    private var spacings: [Market: Int64] = [:]

    /// The lowest maximum age of a price.
    static let oldest = Duration.seconds(60)
    /// The longest time between two trades that is used, in milliseconds.
    private static let longestSpacing = Duration.seconds(300).wholeMilliseconds
    /// How long a venue's clock offset is used, in milliseconds.
    private static let lasts = Duration.seconds(3600).wholeMilliseconds

    /// Records a venue's clock: the `Date` header of its response (RFC 9110, section 6.6.1).
    mutating func record(_ time: Timestamp, of venue: String, at now: ObservationTime) {
        offsets[venue] = (time.milliseconds - now.boottime, now.boottime)
    }

    /// The wall-clock time that most venues agree on; our own if no offset is known.
    func wallTime(at now: ObservationTime) -> Timestamp {
        let errors = offsets.values.filter { now.boottime - $0.at <= Self.lasts }
            .map { $0.offset + now.boottime - now.wall.milliseconds }
        guard !errors.isEmpty else { return now.wall }
        let sorted = errors.sorted { abs($0) < abs($1) }
        return Timestamp(milliseconds: now.wall.milliseconds + sorted[(sorted.count - 1) / 2])
    }

    /// Records a trade. Two trades show how often the market trades.
    mutating func record(_ position: FeedPosition, of market: Market) {
        guard let time = position.time, let trade = position.sequence else { return }
        if let last = trades[market], let lastTime = last.time, let lastTrade = last.sequence, trade > lastTrade,
            time > lastTime
        {
            let count = trade.subtractingReportingOverflow(lastTrade)
            spacings[market] =
                count.overflow ? 0 : (time.milliseconds - lastTime.milliseconds) / count.partialValue
        }
        trades[market] = position
    }

    /// The maximum age of a market's price by its own time: ten usual gaps between trades, at least a minute.
    func oldest(of market: Market) -> Duration {
        max(Self.oldest, .milliseconds(10 * min(spacings[market] ?? 0, Self.longestSpacing)))
    }
}
