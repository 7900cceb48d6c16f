/// `ContinuousClock`, with its sleepers woken on the loop's thread.
public struct TickClock: Clock {
    /// An instant of `CLOCK_BOOTTIME`.
    public typealias Instant = ContinuousClock.Instant

    private let alarm: Alarm

    init(_ alarm: Alarm) {
        self.alarm = alarm
    }

    /// The present instant.
    public var now: Instant { ContinuousClock.now }

    /// The smallest step between two instants.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until an instant. Time in which the machine is suspended counts: one that passes meanwhile ends the sleep at the
    /// resume.
    /// - Parameters:
    ///   - deadline: When to wake.
    ///   - tolerance: How much later it may be, so that two sleepers can be woken at once; `nil` for not at all.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await alarm.sleep(until: deadline, latest: deadline.advanced(by: tolerance ?? .zero))
    }
}
