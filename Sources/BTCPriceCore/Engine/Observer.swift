/// Requests a source that the ticks do not request, every 3 to 4.5 seconds unless configured otherwise. This shows whether the shown price
/// is still that of the other markets, keeps a connection open for the tick that will need it, and finds sources that have recovered.
///
/// The times are spread at random, so that machines that started together do not send their requests together.
package enum Observer {
    /// The time to the first request. It comes soon, because the fallback has no connection until then.
    private static var firstPeriod: Duration { .seconds(2) }
    /// The time to the next request if the prices have moved apart.
    private static var soon: Duration { .seconds(1) }

    /// The longest time between two observations of one currency, milliseconds.
    /// - Parameters:
    ///   - interval: The minimum time between two requests.
    ///   - isFirst: Whether it is the first currency, which is requested each time.
    ///   - count: The number of currencies.
    static func turn(every interval: Duration, isFirst: Bool, of count: Int) -> Int64 {
        // Half of it is added at most, and a request may take a second.
        (interval.wholeMilliseconds * 3 / 2 + 1000) * Int64(isFirst ? 1 : max(1, count - 1))
    }

    /// Runs until its task is cancelled.
    /// - Parameters:
    ///   - background: Pauses with the ticks.
    ///   - interval: Returns the minimum time from one request to the next; up to half of it is added.
    ///   - jitter: Returns a random number from 0 to 1 at each call.
    ///   - observe: Requests the source whose turn it is. Returns whether the prices have moved apart, so that the next request should come
    ///     soon.
    package static func run(
        _ background: BackgroundWork, interval: @escaping @Sendable () -> Duration = { .seconds(3) },
        jitter: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        observe: @escaping @Sendable () async -> Bool
    ) async {
        let spread = { @Sendable (wait: Duration) in wait * (1 + jitter() / 2) }
        await background.run {
            spread(min(firstPeriod, interval()))
        } work: {
            let isRestless = await observe()
            return spread(isRestless ? min(interval(), soon) : interval())
        }
    }
}
