import Synchronization

/// Compares the venues' clocks with this machine's and measures how often each market trades, to detect old prices.
///
/// If a venue's time differs from ours, the venue is wrong, unless most venues agree with it. Offsets are relative to CLOCK_BOOTTIME,
/// so they stay correct if our wall clock is set.
package final class VenueClocks: Sendable {
    private struct State {
        /// By source: the venue's wall clock minus our CLOCK_BOOTTIME, and the CLOCK_BOOTTIME of that observation, both in milliseconds.
        var offsets: [String: (offset: Int64, at: Int64)] = [:]
        var trades: [String: VenueMark] = [:]
        /// By source: the usual time between two trades, in milliseconds.
        var spacings: [String: Int64] = [:]
    }

    /// The lowest maximum age of a price.
    static let oldest = Duration.seconds(60)
    /// The longest time between two trades that is used, in milliseconds.
    private static let longestSpacing = Duration.seconds(300).wholeMilliseconds
    /// How long a venue's clock offset is used, in milliseconds.
    private static let lasts = Duration.seconds(3600).wholeMilliseconds

    private let state = Mutex(State())

    /// No observations.
    package init() {}

    /// Records a venue's clock: the `Date` header of its response (RFC 9110, section 6.6.1).
    func told(_ time: Timestamp, by source: String, at now: ObservationTime) {
        state.withLock { $0.offsets[source] = (time.milliseconds - now.boottime, now.boottime) }
    }

    /// The wall-clock time that most venues agree on; our own if no offset is known.
    func wallTime(at now: ObservationTime) -> Timestamp {
        let errors = state.withLock { state in
            state.offsets.values.filter { now.boottime - $0.at <= Self.lasts }
                .map { $0.offset + now.boottime - now.wall.milliseconds }
        }
        guard !errors.isEmpty else { return now.wall }
        let sorted = errors.sorted { abs($0) < abs($1) }
        return Timestamp(milliseconds: now.wall.milliseconds + sorted[(sorted.count - 1) / 2])
    }

    /// Records a trade. Two trades show how often the market trades.
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

    /// The maximum age of a market's price by its own time: ten usual gaps between trades, at least a minute.
    func oldest(of source: String) -> Duration {
        max(Self.oldest, .milliseconds(10 * min(state.withLock { $0.spacings[source] ?? 0 }, Self.longestSpacing)))
    }
}
