/// Requests a source that the ticks do not request, every 3 to 4.5 seconds unless configured otherwise. This shows whether the shown price
/// is still that of the other markets, keeps a connection open for the tick that will need it, and finds sources that have recovered.
///
/// The times are spread at random, so that machines that started together do not send their requests together.
package struct Observer: Sendable {
    /// The time to the first request. It comes soon, because the fallback has no connection until then.
    static var firstPeriod: Duration { .seconds(2) }
    /// The time to the next request if the prices have moved apart.
    static var soon: Duration { .seconds(1) }

    /// The longest time between two observations of one currency, milliseconds.
    /// - Parameters:
    ///   - interval: The minimum time between two requests.
    ///   - isFirst: Whether it is the first currency, which is requested each time.
    ///   - count: The number of currencies.
    static func turn(every interval: Duration, isFirst: Bool, of count: Int) -> Int64 {
        // Half of it is added at most, and a request may take a second.
        (interval.wholeMilliseconds * 3 / 2 + 1000) * Int64(isFirst ? 1 : max(1, count - 1))
    }

    private let clock: any BoottimeClock
    private let observe: @Sendable () async -> Bool
    private let interval: @Sendable () -> Duration
    private let jitter: @Sendable () -> Double
    private let isPaused: @Sendable () async -> Bool

    /// - Parameters:
    ///   - clock: A monotonic clock.
    ///   - observe: Requests the source whose turn it is. Returns whether the prices have moved apart, so that the next request should come
    ///     soon.
    ///   - interval: Returns the minimum time from one request to the next; up to half of it is added.
    ///   - jitter: Returns a random number from 0 to 1 at each call.
    ///   - isPaused: Whether the ticks are stopped; then it does nothing.
    package init(
        clock: any BoottimeClock, observe: @escaping @Sendable () async -> Bool,
        interval: @escaping @Sendable () -> Duration = { .seconds(3) },
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        isPaused: @escaping @Sendable () async -> Bool = { false }
    ) {
        self.clock = clock
        self.observe = observe
        self.interval = interval
        self.jitter = jitter
        self.isPaused = isPaused
    }

    /// Runs until its task is cancelled.
    package func run() async {
        var wait = min(Self.firstPeriod, interval())
        while !Task.isCancelled {
            let next = clock.now.advanced(by: wait * (1 + jitter() / 2))
            do { try await clock.sleep(until: next) } catch { return }
            wait = interval()
            if await !isPaused(), await observe() { wait = min(wait, Self.soon) }
        }
    }
}
