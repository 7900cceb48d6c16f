import BTCPriceAPI
package import BTCPriceCore
import Dispatch
import Synchronization
import Varlink

/// Another btc-priced at a Varlink socket as a source: it is watched, and each of its states counts as one price.
///
/// A blocking connection on a thread of its own, since a peer is local: a socket's file that ssh(1), a bind mount or a satellite
/// provides. A lost connection is opened again after a second, and after ten at most.
package final class PeerFeed: PriceFeed {
    private enum Phase: Sendable {
        case stopped
        /// There has been no state yet.
        case connecting
        case ready(LoadedPrice)
        case failed(PriceLoadingError)

        /// What a request returns; `nil` if it must wait.
        var result: Result<[LoadedPrice], PriceLoadingError>? {
            switch self {
            case .stopped: .failure(.unavailable("not watched while the ticks are paused"))
            case .connecting: nil
            case .ready(let price): .success([price])
            case .failed(let error): .failure(error)
            }
        }
    }

    private typealias Waiter = CheckedContinuation<Result<[LoadedPrice], PriceLoadingError>, Never>

    private struct State {
        var phase = Phase.stopped
        /// Identifies the thread that may change the phase. A thread that was stopped may still run.
        var run: UInt64 = 0
        /// Ends that thread's waits.
        var stopSignal: StopSignal?
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0

        mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }
    }

    package let venue: Venue
    package let market: Market
    private let path: String
    private let ownInstance: String
    private let now: TimeSource
    private let state = Mutex(State())

    /// - Parameters:
    ///   - name: The source's name in the configuration.
    ///   - path: The socket's file.
    ///   - ownInstance: This daemon's instance: its own price is no second opinion.
    ///   - now: Reads the clocks.
    package init(name: String, path: String, ownInstance: String, now: @escaping TimeSource) {
        venue = Venue(name)
        market = Market(name, "BTC/USD")
        self.path = path
        self.ownInstance = ownInstance
        self.now = now
    }

    package func start(_ arrived: @escaping @Sendable () -> Void) {
        let signal = StopSignal()
        let run = state.withLock { state -> UInt64? in
            guard case .stopped = state.phase else { return nil }
            state.run += 1
            state.phase = .connecting
            state.stopSignal = signal
            return state.run
        }
        guard let run else { return }
        // A queue of its own: it blocks.
        DispatchQueue(label: "io.btcpriced.peer").async { self.follow(run, signal, arrived) }
    }

    package func stop() {
        let waiters = state.withLock { state in
            state.run += 1
            state.phase = .stopped
            state.stopSignal.take()?.set()
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume(returning: .failure(.cancelled)) }
    }

    /// The newest price. Waits for the first one after the start.
    package func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        if let result = state.withLock({ $0.phase.result }) { return try result.get() }
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                let result = state.withLock { state -> Result<[LoadedPrice], PriceLoadingError>? in
                    if Task.isCancelled { return .failure(.cancelled) }
                    if let result = state.phase.result { return result }
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

    // MARK: - On the feed's own thread

    /// Watches the peer until it is stopped.
    private func follow(_ run: UInt64, _ signal: StopSignal, _ arrived: @Sendable () -> Void) {
        var reading = PeerReading(ownInstance: ownInstance)
        var pause = Bounds.firstPause
        repeat {
            do throws(ClientError) {
                var peer = try PriceConnection(path: path, timeout: Bounds.timeout)
                let status = try peer.getStatus()
                var interval = Duration.milliseconds(status.ticks.interval)
                // A daemon of 0.1.0 has dollars only, and knows no currencies to ask for.
                if status.price.state.currency == Currency.usd.rawValue {
                    try peer.watch()
                } else {
                    let dollars = try peer.listCurrencies().first { $0.currency == Currency.usd.rawValue }
                    interval = dollars.map { .milliseconds($0.interval) } ?? interval
                    try peer.watch([Currency.usd.rawValue])
                }
                while true {
                    let message = try peer.nextState(
                        timeout: max(Bounds.silence, interval * 3), newestOnly: true, interruption: signal.descriptor)
                    let phase: Phase
                    do throws(PriceLoadingError) {
                        phase = .ready(try reading.price(in: message, of: market, every: interval, at: now()))
                        pause = Bounds.firstPause
                    } catch {
                        phase = .failed(error)
                    }
                    guard change(to: phase, run) else { return }
                    arrived()
                    // Behind the socket is another daemon, or another start of it: its interval may be another one.
                    guard message.instance == status.price.instance else { break }
                }
            } catch {
                // A signal of the process interrupts, too.
                guard change(to: .failed(Self.loadingError(error)), run) else { return }
                arrived()
            }
            signal.wait(pause)
            pause = min(pause * 2, Bounds.longestPause)
        } while state.withLock({ $0.run == run })
    }

    /// - Returns: Whether the thread is to go on.
    private func change(to phase: Phase, _ run: UInt64) -> Bool {
        let waiters = state.withLock { state -> [Waiter]? in
            guard state.run == run else { return nil }
            state.phase = phase
            return state.takeWaiters()
        }
        guard let waiters else { return false }
        if let result = phase.result { for waiter in waiters { waiter.resume(returning: result) } }
        return true
    }

    private static func loadingError(_ error: ClientError) -> PriceLoadingError {
        switch error {
        case .unreachable(_, let reason): .unreachable(oneLine(reason))
        case .timedOut: .unreachable("no message in time")
        case .closed: .unreachable("the connection was closed")
        case .interrupted: .unreachable("the connection was interrupted")
        case .unintelligible(_, let reason): .invalidData(oneLine(reason))
        case .refused(let error, let reason): .unavailable(oneLine(reason.map { "\(error): \($0)" } ?? error))
        }
    }

    private enum Bounds {
        /// The longest wait for a connection and for the peer's status.
        static let timeout = Duration.seconds(2)
        /// After this time without a message the connection is opened again; longer if the peer's interval is.
        static let silence = Duration.seconds(60)
        static let firstPause = Duration.seconds(1)
        static let longestPause = Duration.seconds(10)
    }
}
