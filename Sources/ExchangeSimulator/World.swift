import Synchronization

/// What all connections share: the prices, the faults, and the counts.
final class World: Sendable {
    /// What to do with a request.
    enum Verdict {
        case answer(VenueShape.Answer, delayMilliseconds: Int64)
        case stallBody(VenueShape.Answer)
        case reset
        case dark
    }

    private struct State {
        var feed: PriceFeed
        var script: FaultScript
        var scriptSince: ContinuousClock.Instant
        /// Since the script was set.
        var numbers: [VenueName: Int] = [:]
        var total: [VenueName: Int] = [:]

        /// Since the script was set.
        var milliseconds: Int64 {
            let (seconds, attoseconds) = scriptSince.duration(to: .now).components
            return seconds * 1000 + attoseconds / 1_000_000_000_000_000
        }
    }

    private let state: Mutex<State>

    init(feed: PriceFeed, script: FaultScript) {
        state = Mutex(State(feed: feed, script: script, scriptSince: .now))
    }

    func set(_ script: FaultScript) {
        state.withLock { state in
            state.script = script
            state.scriptSince = .now
            state.numbers = [:]
        }
    }

    /// Requests a venue has seen in all.
    func requests(of venue: VenueName) -> Int {
        state.withLock { $0.total[venue, default: 0] }
    }

    func refuses(_ venue: VenueName) -> Bool {
        state.withLock { $0.script.refuses(venue, at: $0.milliseconds) }
    }

    func judge(_ request: VenueShape.Request, to venue: VenueName) -> Verdict {
        state.withLock { state in
            state.numbers[venue, default: 0] += 1
            state.total[venue, default: 0] += 1
            let number = state.numbers[venue, default: 0]
            let shape = VenueShape(venue: venue)
            let fault = state.script.fault(for: venue, request: number, at: state.milliseconds)
            switch fault {
            case .answer(let status, let retryAfter, let body):
                return .answer(
                    VenueShape.Answer(status: status, retryAfter: retryAfter, body: body), delayMilliseconds: 0)
            case .reset, .refuse: return .reset
            case .dark: return .dark
            case .delay, .stallBody, nil: break
            }
            if let refusal = shape.refusal(of: request) { return .answer(refusal, delayMilliseconds: 0) }
            let answer = shape.answer(price: state.feed.next(), number: state.total[venue, default: 0])
            switch fault {
            case .stallBody: return .stallBody(answer)
            case .delay(let milliseconds): return .answer(answer, delayMilliseconds: milliseconds)
            default: return .answer(answer, delayMilliseconds: 0)
            }
        }
    }
}
