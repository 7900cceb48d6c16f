import Synchronization
import TestSupport

@testable import BTCPriceCore

/// A whole core on a test clock: the shipped ticker, keeper and state machine, with scripted loaders and a store in memory.
final class World: Sendable {
    /// The wall clock and the boot clock at the test clock's zero.
    static let start = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_200_000), boottime: 5_000_000)

    let clock = TestClock()
    let primary: ScriptedLoader
    let fallback = ScriptedLoader("coinbase")
    let store: MemoryStore
    let engine: PriceEngine
    let ticker: OneSecondTicker
    let events: EventLog
    let now: TimeSource
    /// Whether each fresh quote was saved before it was shown.
    let shownUnsaved = Counter()
    let saves: Counter
    private let states: AsyncStream<(PriceState, Bool)>

    /// - Parameters:
    ///   - limits: The limits of the primary.
    ///   - stream: The stream of the primary.
    ///   - isNew: Whether no price is known. If false, a price near 68,900 is accepted without confirmation.
    init(
        cached: CachedPrice? = nil, interval: Duration = .seconds(1), limits: [RequestLimit] = [],
        rules: SelectionRules = SelectionRules(), isNew: Bool = false, stream: (any PriceStream)? = nil
    ) {
        primary = ScriptedLoader("binance", market: "BTC/USDT", limits: limits)
        let (states, published) = AsyncStream.makeStream(of: (PriceState, Bool).self)
        self.states = states
        let events = EventLog()
        self.events = events
        let store = MemoryStore(cached)
        self.store = store
        saves = store.saves
        let now: TimeSource = { [clock] in World.start.advanced(by: clock.offset) }
        self.now = now
        let sources = [primary, fallback].map { loader in
            FetchLatestPrice(
                loader: loader, stream: loader.market == .binance ? stream : nil,
                address: "https://\(loader.venue.name)", timeout: .milliseconds(800), hedge: .milliseconds(400))
        }
        let persist = PersistLastValidPrice(store: store, report: { events.add($0) })
        let watcher = Watcher { [shownUnsaved] state, toWatchers in
            if state.freshness == .fresh, store.price?.quote != state.quote { shownUnsaved.add() }
            published.yield((state, toWatchers))
        }
        let plan = CurrencyPlan(.usd, sources, interval: interval, rules: rules, belief: isNew ? Belief() : .ofToday)
        engine = PriceEngine(
            [plan], clock: clock, budget: .seconds(1), now: now, jitter: { 0.5 }, subscribers: [persist, watcher],
            report: { events.add($0) })
        ticker = OneSecondTicker([.init(.usd, interval)], clock: clock, target: engine)
    }

    /// Waits until a market's price is in the book.
    func isRecorded(_ market: Market) async {
        while await !engine.observedMarkets.contains(market) { await Task.yield() }
    }

    /// The next state that watchers receive.
    func nextTick() async -> PriceState {
        for await (state, toWatchers) in states where toWatchers { return state }
        return .empty()
    }

    /// Answers the primary's next request, which is a tick's.
    /// - Returns: The state that the tick makes.
    func tick(_ price: String) async -> PriceState {
        await primary.isAsked()
        primary.answer(price)
        return await nextTick()
    }

    /// The next state that is shown, with or without a message to watchers.
    func nextState() async -> PriceState {
        for await (state, _) in states { return state }
        return .empty()
    }
}

/// Passes on published states.
private struct Watcher: StateSubscriber {
    let watch: @Sendable (PriceState, Bool) -> Void

    func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        watch(state, publication.isForAllWatchers)
    }
}

extension Market {
    static let binance = Market("binance", "BTC/USDT")
    static let coinbase = Market("coinbase", "BTC/USD")
    static let bitstamp = Market("bitstamp", "BTC/USD")
    static let kraken = Market("kraken", "BTC/USD")
}

extension Belief {
    /// What is believed if both sources had a price of 68,900 a moment ago.
    static var ofToday: Belief {
        let (log, at) = (price("68900").logarithm, World.start.boottime)
        var bases = BasisTable()
        for market in [Market.binance, .coinbase] { bases.begin(market, at: at) }
        return Belief(
            ReferencePrice(market: .binance, exchange: "binance", log: log, at: at, readLog: log, since: at),
            bases: bases, agreed: true)
    }
}

final class EventLog: Sendable {
    private let events = Mutex<[PriceEvent]>([])

    func add(_ event: PriceEvent) {
        events.withLock { $0.append(event) }
    }

    /// The events without the ticks.
    var all: [PriceEvent] {
        events.withLock { events in
            events.filter { if case .ticked = $0 { false } else { true } }
        }
    }
}

func price(_ text: String) -> Price { Price(text) ?? 0 }

func cached(_ value: String, age: Duration = .seconds(3600), positions: [KeptPosition] = []) -> CachedPrice {
    CachedPrice(
        ShownPrice(
            PriceQuote(
                value: price(value), currency: "USD",
                timestamp: Timestamp(milliseconds: World.start.wall.milliseconds - age.wholeMilliseconds),
                source: "binance", market: "BTC/USDT")), positions: positions)
}

extension PriceEngine {
    /// The number of callers that wait for the round in progress of the first currency, including the tick; 0 if there is none.
    var callersWaiting: Int { first.shared?.task.callers ?? 0 }
    func callersWaiting(for currency: Currency) -> Int { tracked(currency)?.shared?.task.callers ?? 0 }

    /// The markets of the first currency with a valid observation.
    var observedMarkets: Set<Market> { Set(first.tracker.book.newest.map(\.market)) }
}
