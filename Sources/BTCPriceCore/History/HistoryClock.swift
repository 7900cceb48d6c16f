import Synchronization

/// The time by which the history is kept: this machine's, unless most venues agree on another one. A pure value.
///
/// A machine without a battery starts with the time of its last shutdown. Minutes that were kept by that time would be false for ever.
struct HistoryTime: Sendable {
    /// How far the time can be trusted.
    enum Trust: Sendable, Hashable {
        /// Nothing is known yet: minutes are held in memory.
        case waiting
        /// For ten minutes no venue's time was known, or no agreement: minutes are kept by this machine's clock, in doubt.
        case doubted
        /// Most venues agree with it, or have at some time since the start.
        case confirmed
    }

    /// How long minutes are held in memory, milliseconds.
    static let longestWait = Duration.seconds(600).wholeMilliseconds

    /// How far the venues' time seems to move, milliseconds: it has whole seconds, and responses take time.
    private static let jitter: Int64 = 5000

    private(set) var trust = Trust.waiting
    private let since: BootTime
    /// The time in use minus the boot clock, milliseconds. Unlike the wall clock, the boot clock is never set.
    private(set) var offset: Int64

    init(at now: ObservationTime) {
        since = now.boottime
        offset = Self.offset(now)
    }

    private static func offset(_ now: ObservationTime) -> Int64 { now.wall.milliseconds - now.boottime.milliseconds }

    /// The same moment by the time in use.
    mutating func time(at now: ObservationTime) -> ObservationTime {
        let machines = Self.offset(now)
        // Once the time is confirmed, a wall clock that is set by more than the tolerance is followed only when the venues agree with it.
        if trust != .confirmed || abs(machines - offset) <= VenueClocks.tolerance { offset = machines }
        if trust == .waiting, now.boottime - since >= Self.longestWait { trust = .doubted }
        return ObservationTime(
            wall: Timestamp(milliseconds: now.boottime.milliseconds + offset), boottime: now.boottime)
    }

    mutating func check(_ comparison: ClockComparison, at now: ObservationTime) {
        switch comparison {
        case .unknown: return
        case .agrees: offset = Self.offset(now)
        case .differs(let difference):
            let theirs = Self.offset(now) + difference.milliseconds
            if trust != .confirmed || abs(theirs - offset) > Self.jitter { offset = theirs }
        }
        trust = .confirmed
    }
}

/// The history's clock, which its parts share.
package final class HistoryClock: Sendable {
    private let machine: TimeSource
    private let state: Mutex<HistoryTime>

    /// - Parameter now: This machine's clocks.
    package init(now: @escaping TimeSource) {
        machine = now
        state = Mutex(HistoryTime(at: now()))
    }

    /// The present moment by the history's time.
    package var now: ObservationTime { reading(at: machine()).time }

    /// Whether most venues have agreed with the history's time since the start. What is deleted must not depend on any other time.
    package var isConfirmed: Bool { state.withLock { $0.trust == .confirmed } }

    /// Whether the wait for the venues' time is over.
    package var isSettled: Bool { state.withLock { $0.trust != .waiting } }

    package func check(_ comparison: ClockComparison, at now: ObservationTime) {
        state.withLock { $0.check(comparison, at: now) }
    }

    func reading(at now: ObservationTime) -> (time: ObservationTime, trust: HistoryTime.Trust) {
        state.withLock { ($0.time(at: now), $0.trust) }
    }
}
