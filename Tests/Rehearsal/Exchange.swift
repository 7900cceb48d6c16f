import BTCPriceCore
import BTCPriceNetworking
import ExchangeSimulator
import Synchronization
import TestSupport

/// A fault of an exchange, for some time.
enum Fault: CaseIterable {
    case outage, hang, slow, garbage, staleNode, rateLimit, ban, refusal
}

/// A virtual exchange as its clients see it: responses, faults, limits, and bans that grow with each request during a ban.
final class VirtualExchange: PriceLoader {
    fileprivate struct State {
        var generator: SeededGenerator
        var fault: (kind: Fault, until: Duration)?
        var nextFault: Duration
        var counter: RequestCounter
        var bannedUntil = Duration.zero
        var refusedUntil = Duration.zero
        var trades: Int64 = 0
        var seen = Seen()
    }

    /// The counts of faults and bans.
    struct Seen {
        var faults = 0
        var bans = 0
        /// The requests during a ban or a Retry-After. Each makes the ban longer.
        var deepened = 0
    }

    let exchange: Exchange
    private let clock: VirtualClock
    private let faults: [Fault]
    /// The average time from one fault to the next.
    private let calm: Duration
    private let state: Mutex<State>

    /// - Parameters:
    ///   - exchange: The real exchange that it simulates.
    ///   - faults: The faults to draw from.
    ///   - calm: The average time without a fault; `.zero` for one fault that never ends.
    init(_ exchange: Exchange, clock: VirtualClock, seed: UInt64, faults: [Fault], calm: Duration) throws {
        guard let venue = VenueName(rawValue: exchange.name) else { throw Unknown(name: exchange.name) }
        self.exchange = exchange
        self.clock = clock
        self.faults = faults
        self.calm = calm
        var generator = SeededGenerator(seed: seed)
        let first = Self.draw(around: calm, &generator)
        state = Mutex(State(generator: generator, nextFault: first, counter: RequestCounter(venue)))
    }

    struct Unknown: Error { let name: String }

    var venue: Venue { exchange.venue }
    var market: Market { exchange.dollars }

    var seen: Seen { state.withLock { $0.seen } }
    var counts: String { state.withLock { $0.counter.text } }
    /// Whether a permitted request gets a price in time: the exchange has no fault, a ban has been over for a minute, and a refusal for so
    /// long (27 h) that even a rare probe has noticed.
    var isWell: Bool {
        let now = clock.offset
        return state.withLock { state in
            now >= state.bannedUntil + .seconds(60) && now >= state.refusedUntil
                && (state.fault.map { now >= $0.until } ?? (now < state.nextFault))
        }
    }
    var isWithinLimits: Bool { state.withLock { $0.counter.isWithinLimits } }

    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let now = clock.offset
        let (latency, outcome) = state.withLock { $0.answer(at: now, faults, calm, exchange) }
        do { try await clock.sleep(until: clock.now.advanced(by: latency)) } catch { throw .cancelled }
        return [try outcome.get()]
    }

    fileprivate static func draw(around mean: Duration, _ generator: inout SeededGenerator) -> Duration {
        mean * Int.random(in: 200...1800, using: &generator) / 1000
    }
}

extension VirtualExchange.State {
    mutating func answer(
        at now: Duration, _ faults: [Fault], _ calm: Duration, _ exchange: Exchange
    ) -> (latency: Duration, outcome: Result<LoadedPrice, PriceLoadingError>) {
        counter.count(at: now.wholeMilliseconds)
        if let fault, now >= fault.until {
            self.fault = nil
            nextFault = now + VirtualExchange.draw(around: calm, &generator)
        }
        if fault == nil, now >= nextFault, let kind = faults.randomElement(using: &generator) {
            // From half a minute to half an hour; a refusal lasts up to 5.6 hours.
            let longest = kind == .refusal ? 20_000 : 1800
            fault = (
                kind,
                calm == .zero ? .seconds(1 << 40) : now + .seconds(Int.random(in: 30...longest, using: &generator))
            )
            seen.faults += 1
            if kind == .refusal, let until = fault?.until { refusedUntil = until + .seconds(27 * 3600) }
        }
        let near = Duration.milliseconds(Int.random(in: 20...150, using: &generator))
        if now < bannedUntil {
            seen.deepened += 1
            bannedUntil += .seconds(60)
            return (near, .failure(.rateLimited("HTTP 418, deepened", retryAfter: bannedUntil - now)))
        }
        switch fault?.kind {
        case .outage: return (near, .failure(.unavailable("HTTP 503")))
        case .hang: return (.seconds(3600), .failure(.unreachable("reset")))
        case .slow: return (near * 8, .success(price(exchange, at: now)))
        case .garbage: return (near, .failure(.invalidData("a page of HTML instead of JSON")))
        case .staleNode
        where Int.random(in: 0..<4, using: &generator) == 0
            && (exchange.hasTime || exchange.hasSequence):
            return (
                near,
                .success(
                    LoadedPrice(
                        exchange.dollars, 68_900, position: FeedPosition(time: Timestamp(milliseconds: 1), sequence: 1))
                )
            )
        case .rateLimit, .ban:
            // A limit or a ban occurs once: after it has expired, requests succeed again.
            let isBan = fault?.kind == .ban
            fault = nil
            nextFault = now + VirtualExchange.draw(around: calm, &generator)
            let length = Duration.seconds(Int.random(in: isBan ? 120...10_800 : 5...120, using: &generator))
            bannedUntil = now + length
            seen.bans += 1
            return (near, .failure(.rateLimited(isBan ? "HTTP 418" : "HTTP 429", retryAfter: length)))
        case .refusal: return (near, .failure(.refused("HTTP 451")))
        case .staleNode, nil: return (near, .success(price(exchange, at: now)))
        }
    }

    private mutating func price(_ exchange: Exchange, at now: Duration) -> LoadedPrice {
        trades += 1
        let cents = 6_890_000 + Int.random(in: -5000...5000, using: &generator)
        let time = VirtualDaemon.wallStart + now.wholeMilliseconds
        return LoadedPrice(
            exchange.dollars, Price(Int64(cents), scale: 2),
            position: FeedPosition(
                time: exchange.hasTime ? Timestamp(milliseconds: time) : nil,
                sequence: exchange.hasSequence ? trades : nil))
    }
}
