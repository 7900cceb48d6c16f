import BTCPriceCore
import Glibc
import Synchronization
import Threads

/// Finds out whether a name can be resolved, before a connection is tried.
///
/// getaddrinfo(3) can't be cancelled and takes many seconds where a name server is silent. The HTTP client starts one for every
/// connection and has them wait for each other, so that one dark name would hold up all sources, and more would pile up with every
/// tick. Here a name is looked up once at a time, whoever waits can leave, and whoever comes later is told at once.
final class NameLookup: Sendable {
    private typealias Outcome = Result<Void, PriceLoadingError>

    private struct Pending {
        let since: ContinuousClock.Instant
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
    }

    private struct State {
        var pending: [String: Pending] = [:]
        var lastWaiter = 0
    }

    /// A lookup that is older than this is said not to be answered.
    private static let patience = Duration.milliseconds(500)

    private let state = Mutex(State())
    private let lookUp: @Sendable (String) -> Int32
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - lookUp: Looks a name up and blocks for as long as that takes; 0 or a code of getaddrinfo(3).
    ///   - now: Reads the clock.
    init(
        lookUp: @escaping @Sendable (String) -> Int32 = systemLookup,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.lookUp = lookUp
        self.now = now
    }

    /// Returns where the name can be resolved, or is an address.
    func resolve(_ host: String) async throws(PriceLoadingError) {
        let present = now()
        let (waiter, isNew) = try state.withLock { state throws(PriceLoadingError) in
            if let pending = state.pending[host], pending.since.duration(to: present) > Self.patience {
                throw .unreachable("no name server answers for \(host)")
            }
            let isNew = state.pending[host] == nil
            if isNew { state.pending[host] = Pending(since: present) }
            state.lastWaiter += 1
            return (state.lastWaiter, isNew)
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome: Outcome? = state.withLock { state in
                    // Cancelled before it could wait: whoever cancelled has found nobody to wake.
                    if Task.isCancelled { return .failure(.cancelled) }
                    // Ended since it was joined: the connection itself will tell.
                    guard state.pending[host] != nil else { return .success(()) }
                    state.pending[host]?.waiters[waiter] = continuation
                    return nil
                }
                if isNew { start(host) }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            state.withLock { $0.pending[host]?.waiters.removeValue(forKey: waiter) }?
                .resume(returning: .failure(.cancelled))
        }
        try outcome.get()
    }

    private func start(_ host: String) {
        // A thread of its own: it blocks for as long as a name server is silent.
        let isStarted = Thread.start {
            let code = self.lookUp(host)
            self.end(
                host,
                code == 0
                    ? .success(())
                    : .failure(.unreachable("\(host) cannot be resolved: \(String(cString: gai_strerror(code)))")))
        }
        if !isStarted { end(host, .failure(.unreachable("\(host) cannot be looked up: no thread is granted"))) }
    }

    private func end(_ host: String, _ outcome: Outcome) {
        let waiters = state.withLock { $0.pending.removeValue(forKey: host) }?.waiters.values
        for waiter in waiters ?? [:].values { waiter.resume(returning: outcome) }
    }
}

/// Asks the system's resolver.
private func systemLookup(_ host: String) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    if let found { freeaddrinfo(found) }
    return code
}
