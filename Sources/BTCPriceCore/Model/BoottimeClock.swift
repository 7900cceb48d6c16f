/// A clock that counts the time in which the machine is suspended. Tests have one that they move.
///
/// It is no `Clock` of the standard library: a type that is generic over its clock is larger and slower, and `Clock.sleep` leaves the
/// caller's actor.
package protocol BoottimeClock: Sendable {
    var now: ContinuousClock.Instant { get }

    /// Sleeps until an instant.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(until deadline: ContinuousClock.Instant) async throws
}

extension BoottimeClock {
    package func sleep(for duration: Duration) async throws {
        try await sleep(until: now.advanced(by: duration))
    }
}
