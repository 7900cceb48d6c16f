import Synchronization
import TestSupport

@testable import BTCPriceCore

/// A whole core on a clock of its own: ticker, keeper and state machine as shipped, with scripted loaders and a store in memory.
final class World: Sendable {
    /// Wall clock and boot clock at the test clock's zero.
    static let start = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_200_000), boottime: 5_000_000)

    let clock = TestClock()
    let primary: ScriptedLoader
    let fallback = ScriptedLoader("coinbase")
    let store: MemoryStore
    let keeper: PriceKeeper<TestClock>
    let ticker: OneSecondTicker<TestClock>
    let getPrice: GetPrice<TestClock>
    let events: EventLog
    let now: TimeSource
    /// Whether each state that was shown with a fresh quote was saved before.
    let shownUnsaved = Counter()
    let saves: Counter
    private let states: AsyncStream<(PriceState, Bool)>
    private let datings = Counter()

    /// - Parameters:
    ///   - limits: Those of the primary.
    ///   - isNew: Whether no price was ever seen; else one of 68,900 is believed by itself.
    init(
        cached: CachedPrice? = nil, interval: Duration = .seconds(1), limits: [RequestLimit] = [],
        rules: JudgementRules = JudgementRules(), isNew: Bool = false
    ) {
        primary = ScriptedLoader("binance", market: "BTC/USDT", limits: limits)
        let (states, published) = AsyncStream.makeStream(of: (PriceState, Bool).self)
        self.states = states
        let events = EventLog()
        self.events = events
        let store = MemoryStore(cached)
        self.store = store
        saves = store.saves
        let now: TimeSource = { [clock] in
            let passed = clock.now.offset.wholeMilliseconds
            return ObservationTime(
                wall: Timestamp(milliseconds: World.start.wall.milliseconds + passed),
                boottime: World.start.boottime + passed)
        }
        self.now = now
        let datings = datings
        let candidates = [primary, fallback].map { loader in
            FetchCandidate(
                fetch: FetchLatestPrice(
                    loader: loader,
                    now: {
                        datings.add()
                        return now()
                    }), address: "https://\(loader.source.name)", timeout: .milliseconds(800),
                hedge: .milliseconds(400))
        }
        keeper = PriceKeeper(
            fetch: FetchWithFallback(
                candidates: candidates, interval: interval, now: now, jitter: { 0.5 }, clock: clock),
            persist: PersistLastValidPrice(store: store), clock: clock, budget: .seconds(1),
            machine: PriceStateMachine(
                interval: interval, judge: PriceJudge(rules: rules, judgement: isNew ? Judgement() : .ofToday)),
            now: now,
            publish: { [shownUnsaved] state, toWatchers in
                if state.freshness == .fresh, store.price?.quote != state.quote { shownUnsaved.add() }
                published.yield((state, toWatchers))
            },
            report: { events.add($0) })
        ticker = OneSecondTicker(interval: interval, clock: clock, target: keeper)
        getPrice = GetPrice(keeper: keeper, now: now)
    }

    /// Waits until an answer was dated.
    func answerIsDated() async {
        while datings.count == 0 { await Task.yield() }
    }

    /// The next state that watchers get.
    func nextTick() async -> PriceState {
        for await (state, toWatchers) in states where toWatchers { return state }
        return .empty
    }

    /// The next state that is shown at all.
    func nextState() async -> PriceState {
        for await (state, _) in states { return state }
        return .empty
    }
}

extension Judgement {
    /// Both sources were at 68,900 a moment ago.
    static var ofToday: Judgement {
        var judgement = Judgement()
        for source in ["binance", "coinbase"] {
            judgement.premiums[source] = Premium(log: 0, at: World.start.boottime)
        }
        let log = price("68900").logarithm
        judgement.index = Index(source: "binance", log: log, at: World.start.boottime, read: (log, true))
        judgement.level = log
        return judgement
    }
}

final class EventLog: Sendable {
    private let events = Mutex<[PriceEvent]>([])

    func add(_ event: PriceEvent) {
        events.withLock { $0.append(event) }
    }

    /// What was told, the ticks apart.
    var all: [PriceEvent] {
        events.withLock { events in
            events.filter { if case .ticked = $0 { false } else { true } }
        }
    }
}

func price(_ text: String) -> Price { Price(text) ?? 0 }

func cached(_ value: String, age: Duration = .seconds(3600), marks: [String: VenueMark] = [:]) -> CachedPrice {
    CachedPrice(
        quote: PriceQuote(
            value: price(value), currency: "USD",
            timestamp: Timestamp(milliseconds: World.start.wall.milliseconds - age.wholeMilliseconds),
            source: "binance", market: "BTC/USDT"),
        observedBoottime: nil, marks: marks)
}
