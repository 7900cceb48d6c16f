import Synchronization

/// What the venues' clocks say of this machine's clock, and how often each market trades: by that an old price is known.
///
/// A venue whose time differs from ours is wrong itself, unless most venues agree that we are. What is kept is held against CLOCK_BOOTTIME, so
/// it stays right if our wall clock is set.
package final class VenueClocks: Sendable {
    private struct State {
        /// By source: the venue's wall clock less our CLOCK_BOOTTIME, milliseconds, and when that was seen.
        var offsets: [String: (offset: Int64, at: Int64)] = [:]
        var trades: [String: VenueMark] = [:]
        /// By source: the usual time between two trades, milliseconds.
        var spacings: [String: Int64] = [:]
    }

    /// A price may be this old at the least.
    static let oldest = Duration.seconds(60)
    /// No market is believed to trade more rarely, milliseconds.
    private static let longestSpacing = Duration.seconds(300).wholeMilliseconds
    /// For so long a venue's word on the time counts.
    private static let lasts = Duration.seconds(3600).wholeMilliseconds

    private let state = Mutex(State())

    /// Nothing is known yet.
    package init() {}

    /// A venue's clock was seen: the `Date` header of its response (RFC 9110, section 6.6.1).
    func told(_ time: Timestamp, by source: String, at now: ObservationTime) {
        state.withLock { $0.offsets[source] = (time.milliseconds - now.boottime, now.boottime) }
    }

    /// The wall-clock time as most venues have it; our own, if none has told its.
    func wallTime(at now: ObservationTime) -> Timestamp {
        let errors = state.withLock { state in
            state.offsets.values.filter { now.boottime - $0.at <= Self.lasts }
                .map { $0.offset + now.boottime - now.wall.milliseconds }
        }
        guard !errors.isEmpty else { return now.wall }
        let sorted = errors.sorted { abs($0) < abs($1) }
        return Timestamp(milliseconds: now.wall.milliseconds + sorted[(sorted.count - 1) / 2])
    }

    /// A trade was seen: two of them tell how often the market trades.
    func saw(_ mark: VenueMark, of source: String) {
        guard let time = mark.time, let trade = mark.trade else { return }
        state.withLock { state in
            if let last = state.trades[source], let lastTime = last.time, let lastTrade = last.trade, trade > lastTrade,
                time > lastTime
            {
                let trades = trade.subtractingReportingOverflow(lastTrade)
                state.spacings[source] =
                    trades.overflow ? 0 : (time.milliseconds - lastTime.milliseconds) / trades.partialValue
            }
            state.trades[source] = mark
        }
    }

    /// How old a market's price may be by its own time: ten usual gaps between trades, a minute at the least.
    func oldest(of source: String) -> Duration {
        max(Self.oldest, .milliseconds(10 * min(state.withLock { $0.spacings[source] ?? 0 }, Self.longestSpacing)))
    }
}
