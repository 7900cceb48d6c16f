import BTCPriceAPI
import BTCPriceCore
import Dispatch
import HTTPTypes
import Synchronization
import Varlink

/// Asks the daemon. Replies are kept for a quarter of a second, and requests that come meanwhile share one: so a busy gateway costs the
/// daemon a few calls a second.
final class DaemonClient: Sendable {
    /// What is asked.
    enum Question: Sendable, Hashable {
        /// The prices, for a client that wants one: resumes ticks that wait for a client.
        case prices
        /// The prices, for a monitoring system: resumes nothing.
        case states
        case status
        /// ISO 4217, one that is kept; `nil` for the first currency.
        case sources(String?)
        case metrics
    }

    /// What the daemon replied.
    enum Answer: Sendable {
        case currencies(PriceList)
        case status(StatusMessage)
        case sources([SourceReport])
        case metrics([MetricFamily])
    }

    private typealias Outcome = Result<Answer, Problem>

    private struct State {
        var known: [Question: (outcome: Outcome, at: Int64)] = [:]
        var running: [Question: Task<Outcome, Never>] = [:]
    }

    private static let cacheTime: Int64 = 250

    private let link: DaemonLink
    private let state = Mutex(State())

    /// - Parameter socket: Finds the daemon's.
    init(socket: @escaping @Sendable () -> String) {
        link = DaemonLink(socket: socket)
    }

    /// The currencies that are kept, with their prices.
    /// - Parameter wakes: Whether ticks that wait for a client are resumed.
    func prices(wakes: Bool) async throws(Problem) -> PriceList {
        guard case .currencies(let list) = try await ask(wakes ? .prices : .states) else { throw .unavailable("") }
        return list
    }

    func status() async throws(Problem) -> StatusMessage {
        guard case .status(let status) = try await ask(.status) else { throw .unavailable("") }
        return status
    }

    func sources(of currency: String?) async throws(Problem) -> [SourceReport] {
        guard case .sources(let sources) = try await ask(.sources(currency)) else { throw .unavailable("") }
        return sources
    }

    func metrics() async throws(Problem) -> [MetricFamily] {
        guard case .metrics(let families) = try await ask(.metrics) else { throw .unavailable("") }
        return families
    }

    private func ask(_ question: Question) async throws(Problem) -> Answer {
        let present = ObservationTime.now().boottime
        let known = state.withLock { state -> Outcome? in
            guard let known = state.known[question], present - known.at < Self.cacheTime else { return nil }
            return known.outcome
        }
        if let known { return try known.get() }
        let task = state.withLock { state in
            if let running = state.running[question] { return running }
            let task = Task { await run(question) }
            state.running[question] = task
            return task
        }
        return try await task.value.get()
    }

    private func run(_ question: Question) async -> Outcome {
        let outcome = await link.ask(question)
        state.withLock { state in
            state.known[question] = (outcome, ObservationTime.now().boottime)
            state.running[question] = nil
        }
        return outcome
    }
}

/// A kept connection to the daemon, on a thread of its own, since it blocks.
// Sendable, because only the queue uses what changes.
private final class DaemonLink: @unchecked Sendable {
    private enum Bounds {
        /// Longer than a healthy daemon takes.
        static let timeout = Duration.seconds(2)
        /// A daemon that hangs is not asked again for so long: those who wait would wait for one timeout after the other.
        static let pause = Duration.seconds(1)
    }

    private let socket: @Sendable () -> String
    private let queue = DispatchQueue(label: "io.btcpriced.calls")
    private var connection: PriceConnection?
    private var hungAt: ContinuousClock.Instant?

    init(socket: @escaping @Sendable () -> String) {
        self.socket = socket
    }

    func ask(_ question: DaemonClient.Question) async -> Result<DaemonClient.Answer, Problem> {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.reply(to: question)) }
        }
    }

    private func reply(to question: DaemonClient.Question) -> Result<DaemonClient.Answer, Problem> {
        if let hungAt, hungAt.duration(to: .now) < Bounds.pause { return .failure(Self.unreachable) }
        // The daemon closes a connection without a call for ten minutes, and every one when it restarts.
        for isLast in connection == nil ? [true] : [false, true] {
            do throws(ClientError) {
                return .success(try call(question))
            } catch {
                switch error {
                case .refused(PriceInterface.unknownCurrency, _):
                    return .failure(Problem(.notFound, "The price is not kept in this currency."))
                case .refused(PriceInterface.busy, _):
                    return .failure(.unavailable("The daemon has too many pending calls."))
                case .refused("\(ServiceInterface.name).MethodNotFound", _):
                    return .failure(.unavailable("The daemon is older than this gateway. Restart it.", retryAfter: 60))
                case .refused: return .failure(.unavailable("The daemon refused the call."))
                case .timedOut:
                    hungAt = .now
                    return .failure(Self.unreachable)
                case .unreachable, .closed, .interrupted, .unintelligible:
                    if isLast { return .failure(Self.unreachable) }
                }
            }
        }
        return .failure(Self.unreachable)
    }

    private static let unreachable = Problem.unavailable("The daemon can't be reached.")

    private func call(_ question: DaemonClient.Question) throws(ClientError) -> DaemonClient.Answer {
        var connection = try take()
        let answer: DaemonClient.Answer
        switch question {
        case .prices:
            let currencies = try connection.listCurrencies()
            // What it returns is known. It resumes ticks that wait for a client. Without a price it would make the daemon request one.
            if currencies.first?.price.state.quote != nil { _ = try connection.getPrice() }
            answer = .currencies(PriceList(currencies, at: .now()))
        case .states: answer = .currencies(PriceList(try connection.listCurrencies(), at: .now()))
        case .status: answer = .status(try connection.getStatus())
        case .sources(let currency): answer = .sources(try connection.listSources(currency))
        case .metrics: answer = .metrics(try connection.getMetrics())
        }
        self.connection = consume connection
        return answer
    }

    private func take() throws(ClientError) -> PriceConnection {
        if let kept = connection.take() { return kept }
        return try PriceConnection(path: socket(), timeout: Bounds.timeout)
    }
}
