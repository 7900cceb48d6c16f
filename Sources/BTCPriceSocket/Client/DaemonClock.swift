import BTCPriceCore

/// Converts times of the daemon's boot clock to that of the reader, which is another clock if one of them is in a container with a time
/// namespace or on another machine. A pure value.
struct DaemonClock {
    /// A difference up to this, in milliseconds, is the delay of a reply.
    private static let tolerance: Int64 = 1000

    /// How far the reader's clock is ahead, milliseconds.
    private var ahead: Int64 = 0
    /// When the call was sent whose first reply shows the difference; `nil` after that reply.
    private var sentAt: BootTime?

    /// Records that a call is sent.
    mutating func sent(at boottime: BootTime) { sentAt = boottime }

    /// Measures the difference if this is the first reply to a call. The daemon made it between the call and the arrival; if its clock was
    /// not between these times, it is another clock. A price is then shown as older by at most the duration of the call.
    mutating func received(_ message: StateMessage, at boottime: BootTime) {
        guard let sentAt = sentAt.take(), let theirs = message.boottime else { return }
        let isSame = theirs >= sentAt - Self.tolerance && theirs <= boottime + Self.tolerance
        ahead = isSame ? 0 : sentAt - theirs
    }

    /// The message with its times on the reader's clock.
    func converted(_ message: StateMessage) -> StateMessage {
        var message = message
        message.boottime? += ahead
        message.state.price?.observedBoottime? += ahead
        message.state.price?.conversion?.measuredBoottime += ahead
        return message
    }

    func converted(_ rate: PegRate) -> PegRate {
        var rate = rate
        rate.measuredBoottime += ahead
        return rate
    }
}
