package import BTCPriceCore
import BTCPriceSocket
import Synchronization

/// A source that is another btc-priced. Watches it at its Varlink socket, and counts each of its states as one price.
///
/// A peer is local: a socket's file that ssh(1), a bind mount or a satellite provides.
package final class PeerFeed: PriceFeed {
    /// What a peer may send: ten times the messages of the shortest interval, and as many bytes as they may have.
    private static let limit = TrafficLimit(
        messages: 10 * 1000 / Timestamp.possibleIntervals.lowerBound, bytes: 256 * 1024)

    private typealias Outcome = Result<[LoadedPrice], PriceLoadingError>
    private typealias Waiter = CheckedContinuation<Outcome, Never>
    private static let notWatched = Outcome.failure(.unavailable("not watched while the ticks are paused"))

    private struct State {
        var isStarted = false
        /// What a request returns; `nil` if it must wait for the first state.
        var outcome: Outcome? = PeerFeed.notWatched
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0
        var isElsewhere = false

        mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }
    }

    package var feed: (any PriceFeed)? { self }
    package let venue: Venue
    package let market: Market
    private let watch: PriceWatch
    private let ownInstance: String
    private let now: TimeSource
    private let state = Mutex(State())

    /// - Parameter ownInstance: This daemon's instance. Its own price is not an independent confirmation.
    package init(name: String, path: String, ownInstance: String, now: @escaping TimeSource) {
        venue = Venue(name)
        market = Market(name, "BTC/USD")
        watch = PriceWatch(.usd, limit: Self.limit) { path }
        self.ownInstance = ownInstance
        self.now = now
    }

    /// Whether the peer has sources that are not requested at the exchanges' own addresses.
    package var isElsewhere: Bool { state.withLock(\.isElsewhere) }

    package func start(_ arrived: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            guard !state.isStarted else { return false }
            (state.isStarted, state.outcome) = (true, nil)
            return true
        }
        guard isStopped else { return }
        let reading = Mutex(PeerReading(ownInstance: ownInstance))
        watch.start(.ticks) { news in
            if let result = reading.withLock({ self.result(of: news, &$0) }), self.change(to: result) { arrived() }
        }
    }

    package func stop() {
        watch.stop()
        let waiters = state.withLock { state in
            (state.isStarted, state.outcome) = (false, Self.notWatched)
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume(returning: .failure(.cancelled)) }
    }

    /// The newest price. Waits for the first one after the start.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        if let result = state.withLock({ $0.outcome }) { return try result.get() }
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                let result = state.withLock { state -> Outcome? in
                    if Task.isCancelled { return .failure(.cancelled) }
                    if let result = state.outcome { return result }
                    state.waiters[id] = waiter
                    return nil
                }
                if let result { waiter.resume(returning: result) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: .failure(.cancelled))
        }
        return try result.get()
    }

    // MARK: - On the watch's thread

    /// - Returns: `nil` if the news are not about the price.
    private func result(of news: PriceWatch.News, _ reading: inout PeerReading) -> Outcome? {
        switch news {
        case .state(let message, let interval):
            do throws(PriceLoadingError) {
                return .success([
                    try reading.price(in: message, of: market, every: .milliseconds(interval), at: now())
                ])
            } catch {
                return .failure(error)
            }
        case .kept(_, let elsewhere):
            state.withLock { $0.isElsewhere = !elsewhere.isEmpty }
            return nil
        case .gone(let error): return .failure(Self.loadingError(error))
        }
    }

    /// - Returns: Whether the feed is started.
    private func change(to result: Outcome) -> Bool {
        let waiters = state.withLock { state -> [Waiter]? in
            guard state.isStarted else { return nil }
            state.outcome = result
            return state.takeWaiters()
        }
        for waiter in waiters ?? [] { waiter.resume(returning: result) }
        return waiters != nil
    }

    private static func loadingError(_ error: ClientError) -> PriceLoadingError {
        switch error {
        case .unreachable(let path, let reason):
            .unreachable("\(oneLine(path)): \(oneLine(reason)); is the program running that serves it?")
        case .timedOut: .unreachable("no message in time")
        case .closed: .unreachable("the connection was closed")
        case .interrupted: .unreachable("the connection was interrupted")
        case .unintelligible(_, let reason): .invalidData(oneLine(reason))
        case .refused(let error, let reason): .unavailable(oneLine(reason.map { "\(error): \($0)" } ?? error))
        }
    }
}
