import BTCPriceCore
import BTCPriceSocket
import Synchronization

/// Keeps the daemon's replies for a short time. Requests share one meanwhile, so that a busy gateway makes few calls.
final class KeptReplies<Question: Sendable & Hashable, Reply: Sendable>: Sendable {
    private typealias Outcome = Result<Reply, Problem>

    /// The maximum number of calls that run or wait. Further calls are refused.
    private let mostRunning = 256

    private struct State {
        var known: [Question: (outcome: Outcome, at: BootTime)] = [:]
        var running: [Question: Task<Outcome, Never>] = [:]
    }

    private let time: Int64
    private let limit: Int
    private let link: DaemonLink
    private let call: @Sendable (Question, inout PriceConnection) throws(ClientError) -> Reply
    private let rate: CallRate?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - link: The connection for the calls.
    ///   - time: How long a reply is kept.
    ///   - limit: The maximum number of replies that are kept, because clients can vary requests without limit.
    ///   - rate: The rate limit for calls; `nil` if there are only few different requests.
    init(
        _ link: DaemonLink, for time: Duration = .milliseconds(250), limit: Int = 16, rate: CallRate? = nil,
        call: @escaping @Sendable (Question, inout PriceConnection) throws(ClientError) -> Reply
    ) {
        self.link = link
        self.time = time.wholeMilliseconds
        self.limit = limit
        self.call = call
        self.rate = rate
    }

    /// - Parameter client: Who asks, if calls have a rate limit.
    func reply(to question: Question, for client: String = "") async throws(Problem) -> Reply {
        let present = ObservationTime.now().boottime
        let (known, task) = state.withLock { state -> (Outcome?, Task<Outcome, Never>?) in
            if let known = state.known[question], present - known.at < time { return (known.outcome, nil) }
            if let running = state.running[question] { return (nil, running) }
            // The calls of clients that are gone continue.
            guard state.running.count < mostRunning else {
                return (.failure(.unavailable("Too many requests wait for the daemon.", retryAfter: 10)), nil)
            }
            guard let wait = rate.map({ $0.take(for: client, at: present) }) ?? 0 else {
                return (.failure(.unavailable("Too many different requests.", retryAfter: 2)), nil)
            }
            let task = Task {
                if wait > 0 { try? await Task.sleep(for: .milliseconds(wait)) }
                return await run(question)
            }
            state.running[question] = task
            return (nil, task)
        }
        if let known { return try known.get() }
        guard let task else { throw .unavailable("The daemon can't be reached.") }
        return try await task.value.get()
    }

    private func run(_ question: Question) async -> Outcome {
        let outcome = await link.call { connection throws(ClientError) in try self.call(question, &connection) }
        let present = ObservationTime.now().boottime
        state.withLock { state in
            if state.known.count >= limit { state.known = state.known.filter { present - $0.value.at < time } }
            if state.known.count < limit { state.known[question] = (outcome, present) }
            state.running[question] = nil
        }
        return outcome
    }
}

/// The bodies that were made from one reply of the daemon. Requests for the same share one.
final class KeptBodies: Sendable {
    private let bodies = Mutex<[String: Representation]>([:])

    /// The maximum number of bodies. Clients can request many, for example lists of pairs in any order.
    private static let most = 64

    /// The body of a form, made once.
    /// - Parameter form: What the client has requested, however it was spelled.
    func body<Failure>(
        of form: String, _ make: () throws(Failure) -> Representation
    ) throws(Failure) -> Representation {
        if let known = bodies.withLock({ $0[form] }) { return known }
        let made = try make()
        bodies.withLock { if $0.count < Self.most { $0[form] = made } }
        return made
    }
}
