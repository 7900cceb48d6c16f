/// What an observer drives.
package protocol ObserverTarget: Sendable {
    /// Asks the source whose turn it is.
    func observe() async
}

/// Looks beside the ticks at a source that they do not ask, every 10 to 15 seconds: it keeps that connection warm for the tick
/// that will need it, and probes what has rested.
///
/// The times are spread, so that machines which started together do not ask together.
package struct Observer<C: Clock>: Sendable where C.Duration == Duration {
    /// From one look to the next, at the least; half of that is spread on top.
    static var period: Duration { .seconds(10) }
    /// The first look comes soon: the fallback's connection is cold until then.
    static var firstPeriod: Duration { .seconds(2) }

    private let clock: C
    private let target: any ObserverTarget
    private let jitter: @Sendable () -> Double
    private let isPaused: @Sendable () async -> Bool

    /// - Parameters:
    ///   - clock: A monotonic clock.
    ///   - target: What is driven.
    ///   - jitter: From 0 to 1, another one at each call.
    ///   - isPaused: Whether the ticks stand still: then it stands still, too.
    package init(
        clock: C, target: any ObserverTarget, jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        isPaused: @escaping @Sendable () async -> Bool = { false }
    ) {
        self.clock = clock
        self.target = target
        self.jitter = jitter
        self.isPaused = isPaused
    }

    /// Looks again and again until its task is cancelled.
    package func run() async {
        var wait = Self.firstPeriod
        while !Task.isCancelled {
            let next = clock.now.advanced(by: wait * (1 + jitter() / 2))
            do { try await clock.sleep(until: next, tolerance: .seconds(1)) } catch { return }
            if await !isPaused() { await target.observe() }
            wait = Self.period
        }
    }
}
