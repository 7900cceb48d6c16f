/// The times at which ticks are due: `start + n · interval`. A pure value.
///
/// Uses deadlines instead of pauses after each tick, so that nothing drifts. A tick that was missed is skipped, never queued.
struct TickSchedule: Sendable {
    typealias Instant = ContinuousClock.Instant

    let start: Instant
    let interval: Duration
    private(set) var next: Int64 = 0

    /// The next tick to wait for, and the number that were missed before it.
    ///
    /// A deadline that has just passed is still kept: a round that uses its whole budget ends slightly after the next deadline, and must
    /// not cost every second tick. From half an interval on it counts as missed.
    mutating func advance(now: Instant) -> (due: Instant, skipped: Int64) {
        var skipped: Int64 = 0
        let late = instant(next).duration(to: now)
        if late > interval / 2 {
            let elapsed = start.duration(to: now).attoseconds
            let step = interval.attoseconds
            let following = Int64((elapsed + step - 1) / step)
            skipped = following - next
            next = following
        }
        defer { next += 1 }
        return (instant(next), skipped)
    }

    private func instant(_ index: Int64) -> Instant {
        start.advanced(by: interval * index)
    }
}
