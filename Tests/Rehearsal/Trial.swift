import BTCPriceCore
import BTCPriceDaemon
import BTCPriceFeature
import BTCPriceNetworking
import BTCPriceSocket
import Glibc
import Logging
import Synchronization
import TestSupport

// MARK: - The sources

/// A price as a source states it.
struct Reply: Sendable {
    var value: Double
    /// Half of the spread, as a share.
    var half = 0.0
    /// The time that it states, in seconds of the trial; `nil` for now.
    var madeAt: Double?
    var sequence: Int64?
    /// The Date header, seconds from now; `nil` for none.
    var date: Double?
    var latency = 0.04
    /// For a peer: where it says it has the price from.
    var from: String?
    var isUnconfirmed = false

    init(
        _ value: Double, half: Double = 0, madeAt: Double? = nil, sequence: Int64? = nil, date: Double? = nil,
        latency: Double = 0.04, from: String? = nil, isUnconfirmed: Bool = false
    ) {
        (self.value, self.half, self.madeAt, self.sequence) = (value, half, madeAt, sequence)
        (self.date, self.latency, self.from, self.isUnconfirmed) = (date, latency, from, isUnconfirmed)
    }
}

/// What a source answers to a request.
enum Said: Sendable {
    case price(Reply)
    case fails
    case limited(Double)
    case hangs
    static func price(_ value: Double) -> Said { .price(Reply(value)) }
}

/// One request, with all that a liar can know.
struct Question: Sendable {
    let source: String
    let currency: Currency
    /// Seconds of the trial.
    let s: Double
    /// The number of the request.
    let ask: Int
    let fair: Double
    /// The dollar price that was published last; an adversary can compute it himself.
    let shown: PriceState?
}

/// What the sources answer for some time.
struct Trial: Sendable {
    static let four = ["binance", "coinbase", "bitstamp", "kraken"]
    /// It begins with a short id.
    let name: String
    var sources = four
    var rules = SelectionRules()
    var beside: [Scene.Beside] = []
    var orders: [Currency: [String]] = [:]
    var interval = 1.0
    var observes = 3.0
    /// The whole length; counted from `from` on.
    var seconds = 1000.0
    /// The first second that counts.
    var from = 400.0
    /// When the lie ends, to count what lasts.
    var end = Double.infinity
    var market: @Sendable (Double) -> Double = Scene.calm
    var peg: @Sendable (Double) -> Double = { _ in 1 }
    var stated: (@Sendable (Double) -> Double)?
    var apart: @Sendable (String, Double) -> Double = { _, _ in 0 }
    var peers: [String] = []
    var isStreamed = false
    /// A stream's price where it differs from the response.
    var streamed: (@Sendable (Question) -> Double?)?
    var restart: Double?
    var stored: Double?
    var reload: [(at: Double, sources: [String])] = []
    /// Factors of the reference rates of the two sources, by the seconds; and the age of their day.
    var rates: [(at: Double, factor: Double, age: Int64, sources: Int)] = [(0, 1, 0, 2)]
    var say: @Sendable (Question) -> Said? = { _ in nil }

    func dollars(_ source: String, _ s: Double) -> Double {
        Scene.fair(
            source == "binance" ? "coinbase" : origin(of: source), market(s) * (1 + apart(source, s)), peg: 1, at: s)
    }
    func fair(_ source: String, _ currency: Currency, _ s: Double) -> Double {
        let rate = beside.first { $0.currency == currency }?.rate(s) ?? 1
        let value = dollars(source, s) * rate
        return currency == .usd && source == "binance" ? value / peg(s) : value
    }
    func names(_ currency: Currency) -> [String] {
        if currency == .usd { return sources }
        return orders[currency] ?? ["kraken", "coinbase", "bitstamp", "binance"]
    }
    /// The middle of the true prices of all markets.
    func middle(_ currency: Currency, _ s: Double, perTether: Bool) -> Double {
        let names = names(currency).filter { name in
            Exchange.all.contains { $0.name == name && $0.markets[currency] != nil }
        }
        let all = (names.isEmpty ? ["coinbase"] : names).map { name in
            dollars(name, s) * (beside.first { $0.currency == currency }?.rate(s) ?? 1)
        }.sorted()
        let middle = (all[(all.count - 1) / 2] + all[all.count / 2]) / 2
        return perTether ? middle / peg(s) : middle
    }
}

/// A source that answers as the trial says.
final class Liar: PriceLoader {
    let exchange: Exchange
    let market: Market
    let currency: Currency
    private let clock: VirtualClock
    private let trial: Trial
    private let begun: Double
    private let shown: Shared<PriceState?>
    let asks = Atomic(0)

    init(
        _ name: String, _ currency: Currency, _ trial: Trial, _ clock: VirtualClock, begun: Double,
        shown: Shared<PriceState?>
    ) throws {
        guard let exchange = Exchange.all.first(where: { $0.name == name }), let market = exchange.markets[currency]
        else { throw VirtualExchange.Unknown(name: name) }
        (self.exchange, self.market, self.currency) = (exchange, market, currency)
        (self.trial, self.clock, self.begun, self.shown) = (trial, clock, begun, shown)
    }

    var venue: Venue { exchange.venue }
    var companions: [Market] { market == Market("kraken", "BTC/USD") ? [Market("kraken", Market.pegPair)] : [] }
    func q(_ count: Int) -> Question {
        let s = ((clock.seconds - begun) * 1000).rounded() / 1000
        return Question(
            source: exchange.name, currency: currency, s: s, ask: count, fair: trial.fair(exchange.name, currency, s),
            shown: shown.current)
    }

    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        let q = q(asks.add(1, ordering: .relaxed).oldValue)
        let said = trial.say(q) ?? .price(q.fair)
        switch said {
        case .hangs:
            do { try await clock.sleep(until: clock.now.advanced(by: .seconds(3600))) } catch { throw .cancelled }
            throw .unreachable("reset")
        case .fails, .limited:
            do { try await clock.sleep(until: clock.now.advanced(by: .milliseconds(40))) } catch { throw .cancelled }
            if case .limited(let length) = said {
                throw .rateLimited("HTTP 429", retryAfter: .milliseconds(Int(length * 1000)))
            }
            throw .unavailable("HTTP 503")
        case .price(let reply):
            do {
                try await clock.sleep(until: clock.now.advanced(by: .milliseconds(Int(reply.latency * 1000))))
            } catch { throw .cancelled }
            return prices(reply, q)
        }
    }

    func prices(_ reply: Reply, _ q: Question) -> [LoadedPrice] {
        let now = VirtualDaemon.wallStart + Int64(((begun + q.s) * 1000).rounded())
        let made = VirtualDaemon.wallStart + Int64(((begun + (reply.madeAt ?? q.s)) * 1000).rounded())
        let position = FeedPosition(
            time: exchange.hasTime ? Timestamp(milliseconds: made) : nil,
            sequence: exchange.hasSequence ? reply.sequence ?? made : nil)
        let clockTime = reply.date.map { Timestamp(milliseconds: (now + Int64($0 * 1000)) / 1000 * 1000) }
        let stated = (trial.stated ?? trial.peg)(q.s)
        return [
            LoadedPrice(
                market, .cents(reply.value), position: position, halfSpread: reply.half, venueClock: clockTime)
        ] + companions.map { LoadedPrice($0, Price(Int64((stated * 10_000).rounded()), scale: 4)) }
    }

    var traded: LoadedPrice? {
        let q = q(asks.load(ordering: .relaxed))
        let said = trial.say(q) ?? .price(q.fair)
        guard case .price(let reply) = said else { return nil }
        let value = trial.streamed?(q) ?? reply.value
        return LoadedPrice(
            market, .cents(value),
            position: FeedPosition(
                time: Timestamp(
                    milliseconds: VirtualDaemon.wallStart + Int64(((begun + (reply.madeAt ?? q.s)) * 1000).rounded()))))
    }
}

/// Its stream.
final class LiarStream: PriceStream {
    private let venue: Liar
    private let told = Mutex<(@Sendable (StreamNews) -> Void)?>(nil)
    init(_ venue: Liar) { self.venue = venue }
    func start(every interval: Duration, _ told: @escaping @Sendable (StreamNews) -> Void) {
        self.told.withLock { $0 = told }
    }
    func stop() { told.withLock { $0 = nil } }
    func tell() {
        guard let told = told.withLock(\.self), var price = venue.traded else { return }
        price.push = .init(.stream)
        told(.price(price))
    }
}

/// Another machine whose price is a source.
final class LiarPeer: PriceFeed {
    let venue: Venue
    let market: Market
    private let trial: Trial
    private let clock: VirtualClock
    private let begun: Double
    private let arrived = Mutex<(@Sendable () -> Void)?>(nil)
    init(_ name: String, _ trial: Trial, _ clock: VirtualClock, begun: Double) {
        (venue, market) = (Venue(name), Market(name, "BTC/USD"))
        (self.trial, self.clock, self.begun) = (trial, clock, begun)
    }
    func start(_ arrived: @escaping @Sendable () -> Void) { self.arrived.withLock { $0 = arrived } }
    func stop() { arrived.withLock { $0 = nil } }
    private let kept = Mutex<Result<[LoadedPrice], PriceLoadingError>>(.failure(.unavailable("none yet")))
    /// A new state of the peer comes, about once a second; a request gets the last one.
    func tell() {
        let said: Result<[LoadedPrice], PriceLoadingError>
        do throws(PriceLoadingError) { said = .success(try present()) } catch { said = .failure(error) }
        kept.withLock { $0 = said }
        arrived.withLock(\.self)?()
    }
    func load() async throws(PriceLoadingError) -> [LoadedPrice] { try kept.withLock(\.self).get() }
    private func present() throws(PriceLoadingError) -> [LoadedPrice] {
        let s = ((clock.seconds - begun) * 1000).rounded() / 1000
        let fair = trial.fair(venue.name, .usd, s)
        let said =
            trial.say(Question(source: venue.name, currency: .usd, s: s, ask: 0, fair: fair, shown: nil))
            ?? .price(fair)
        guard case .price(let reply) = said else { throw .unavailable("HTTP 503") }
        var price = LoadedPrice(market, .cents(reply.value), halfSpread: reply.half)
        price.observed = VirtualDaemon.time(of: clock)()
        price.push = .init(
            .peer, interval: .seconds(1),
            origin: PriceOrigin(
                source: reply.from ?? "\(venue.name)x", pair: "BTC/USD", instance: venue.name,
                confirmation: reply.isUnconfirmed ? .unconfirmed : nil))
        return [price]
    }
}

private final class Minutes: CandleArchive {
    let kept = Log<KeptCandle>()
    /// The newest form of each, in their order.
    let episodes = Shared<[Episode]>([])
    func keep(_ candles: [KeptCandle]) { for candle in candles { kept.add(candle) } }
    func note(_ changed: [Episode]) {
        episodes.update { known in
            for episode in changed {
                let place = known.firstIndex { $0.subject == episode.subject && $0.start == episode.start }
                if let place { known[place] = episode } else { known.append(episode) }
            }
        }
    }
    func candles(of _: Currency, _: Candle.Step, in _: Range<Int64>, limit _: Int) -> [Candle] { [] }
    func backfill(_: [Candle], of _: Currency, _: Candle.Step) {}
    func insert(_: [Candle], of _: Currency) {}
    func settle(at _: Int64) {}
}

private struct Watching: StateSubscriber {
    let watch: @Sendable (PriceState) -> Void
    func receive(_ state: PriceState, _: Publication, isFirst: Bool, kept: KeptState?) { watch(state) }
}

/// What was counted in one currency.
struct Figures: Sendable {
    var sure1 = 0.0, beyond = 0.0, wrong1 = 0.0, unconfirmed = 0.0, stale = 0.0, single = 0.0, confirmed = 0.0
    var worstSure = 0.0, worst = 0.0
    var changes = 0, turns = 0
    var estimated = 0, fresh = 0, within = 0, withinRead = 0
    var widths: [Double] = []
    var honest: [Double] = []
    var after = (unconfirmed: 0.0, stale: 0.0, wrong: 0.0)
    var lastSource = ""
    var lastConfirmation: Confirmation?
    var high = 0.0, low = Double.infinity
    /// The honest range of each minute.
    var minutes: [Int64: (low: Double, high: Double)] = [:]

    mutating func add(
        _ state: PriceState, _ trial: Trial, _ currency: Currency, at s: Double, length: Double, begun: Double
    ) {
        let isTether = state.quote.map { $0.market.hasSuffix("/USDT") && state.price?.conversion == nil } ?? false
        let honestNow = trial.middle(currency, s, perTether: isTether)
        // The range of the last 3 s, or of the time since the tick before last.
        let back: Double = state.derivation == nil ? 3 : 12
        var (low, high) = (honestNow, honestNow)
        for step in [0.5, 1, 1.5, 2, 2.5, back] {
            let value = trial.middle(currency, s - step, perTether: isTether)
            (low, high) = (min(low, value), max(high, value))
        }
        (self.low, self.high) = (min(self.low, low), max(self.high, high))
        guard state.freshness == .fresh, let quote = state.quote else {
            stale += length
            if s >= trial.end { after.stale += length }
            return
        }
        let value = quote.value.double
        let off = max(0, max(low / value - 1, value / high - 1))
        let isSure = state.confirmation != .unconfirmed
        worst = max(worst, off)
        if isSure { worstSure = max(worstSure, off) }
        if off > 0.01 {
            wrong1 += length
            if isSure { sure1 += length }
            if s >= trial.end { after.wrong += length }
        }
        fresh += 1
        if let plusMinus = state.standing.uncertainty?.plusMinus.double {
            estimated += 1
            if abs(value - honestNow) <= plusMinus { within += 1 }
            // At the time of the reading.
            let read = Double(quote.timestamp.milliseconds - VirtualDaemon.wallStart) / 1000 - begun - 0.04
            if abs(value - trial.middle(currency, read, perTether: isTether)) <= plusMinus { withinRead += 1 }
            widths.append(plusMinus / value)
            honest.append(abs(value - honestNow) / value)
            if isSure, off > 0.0005, off * value > plusMinus { beyond += length }
        }
        switch state.confirmation {
        case .single: single += length
        case .confirmed: confirmed += length
        case .unconfirmed:
            unconfirmed += length
            if s >= trial.end { after.unconfirmed += length }
        case nil: break
        }
        if !lastSource.isEmpty, lastSource != quote.source { changes += 1 }
        if let lastConfirmation, lastConfirmation != state.confirmation { turns += 1 }
        (lastSource, lastConfirmation) = (quote.source, state.confirmation)
    }

    /// How often the estimate contained the honest middle, in percent; `nil` without an estimate.
    var contains: Double? { estimated == 0 ? nil : Double(within) / Double(estimated) * 100 }
    /// The median of the estimates, in percent of the price.
    var width: Double { widths.isEmpty ? 0 : widths.sorted()[widths.count / 2] * 100 }

    var text: String {
        func n(_ x: Double) -> String { x == x.rounded() ? "\(Int(x))" : "\((x * 10).rounded() / 10)" }
        func p(_ x: Double) -> String { "\((x * 100_000).rounded() / 1000)" }
        let width = widths.sorted()
        let median = width.isEmpty ? 0 : width[width.count / 2]
        let cover = estimated == 0 ? "-" : "\((Double(within) / Double(estimated) * 1000).rounded() / 10)"
        let coverRead = estimated == 0 ? "-" : "\((Double(withinRead) / Double(estimated) * 1000).rounded() / 10)"
        let needed = zip(honest, widths).map { $0 / max($1, 0.000001) }.sorted()
        let factor = needed.isEmpty ? 0 : needed[min(needed.count - 1, needed.count * 95 / 100)]
        return [
            n(sure1), n(beyond), n(wrong1), n(unconfirmed), n(stale), n(single), n(confirmed), "\(changes)", "\(turns)",
            p(worstSure), p(worst), "\(fresh == 0 ? 0 : (Double(estimated) / Double(fresh) * 1000).rounded() / 10)",
            cover, coverRead, p(median), "\((factor * 100).rounded() / 100)",
            trialEnd(after),
        ].joined(separator: " | ")
    }
    private func trialEnd(_ a: (unconfirmed: Double, stale: Double, wrong: Double)) -> String {
        "\(Int(a.unconfirmed))/\(Int(a.stale))/\(Int(a.wrong))"
    }
}

private struct NoLog: LogHandler {
    var logLevel = Logger.Level.critical
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {}
}

private let isVerbose = getenv("VERBOSE") != nil
private let tellsEvents = getenv("EVENTS") != nil

extension Trial {
    /// Prints a line for each currency, and what misses its limits.
    /// - Returns: Whether something misses.
    fileprivate func run(on clock: VirtualClock) async throws -> Bool {
        try await clock.sleep(until: clock.instant(at: .seconds((clock.seconds / 100).rounded(.up) * 100)))
        let begun = clock.seconds
        let now = VirtualDaemon.time(of: clock)
        let store = MemoryStore(
            stored.map { value in
                CachedPrice(
                    ShownPrice(
                        PriceQuote(
                            value: .cents(value), currency: "USD",
                            timestamp: Timestamp(milliseconds: VirtualDaemon.wallStart + Int64(begun * 1000) - 2000),
                            source: sources[0], market: sources[0] == "binance" ? "BTC/USDT" : "BTC/USD")))
            })
        let minutes = Minutes()
        let history = PriceHistory(store: minutes, clock: .confirmed(now))
        let latest = Shared([Currency: PriceState]())
        let shownNow = Shared<PriceState?>(nil)
        let figures = Shared([Currency: Figures]())
        let all = [Scene.Beside(.usd, interval: .milliseconds(Int(interval * 1000))) { _ in 1 }] + beside
        let requests = Shared(0)

        func run(_ names: [String], until end: Double, _ feeds: [LiarPeer]) async throws -> (
            engine: PriceEngine, ticker: OneSecondTicker, observing: Task<Void, Never>, pump: Task<Void, Never>,
            venues: [Liar]
        ) {
            var venues: [Liar] = []
            var streams: [LiarStream] = []
            var plans: [CurrencyPlan] = []
            func build(_ names: [String]) throws {
                (venues, streams, plans) = ([], [], [])
                for kept in all {
                    let list = kept.currency == .usd ? names : self.names(kept.currency)
                    var fetches: [FetchLatestPrice] = []
                    for name in list {
                        if let peer = feeds.first(where: { $0.venue.name == name }) {
                            if kept.currency == .usd {
                                fetches.append(
                                    FetchLatestPrice(
                                        loader: peer, address: "virtual", timeout: .milliseconds(800),
                                        hedge: .milliseconds(400)))
                            }
                            continue
                        }
                        guard Exchange.all.contains(where: { $0.name == name && $0.markets[kept.currency] != nil })
                        else { continue }
                        let venue = try Liar(name, kept.currency, self, clock, begun: begun, shown: shownNow)
                        let stream = isStreamed && kept.currency == .usd ? LiarStream(venue) : nil
                        venues.append(venue)
                        if let stream { streams.append(stream) }
                        fetches.append(
                            FetchLatestPrice(
                                loader: venue, stream: stream, address: "virtual", timeout: .milliseconds(800),
                                hedge: .milliseconds(400)))
                    }
                    var rules = rules
                    rules.quorum = min(rules.quorum, max(1, fetches.count))
                    plans.append(
                        CurrencyPlan(
                            kept.currency, fetches, interval: kept.interval, rules: rules,
                            derivation: kept.currency.nearest == nil ? .never : .fallback))
                }
            }
            try build(names)
            var logger = Logger(label: "x") { _ in NoLog() }
            logger.logLevel = .critical
            let reporter = Reporter(logger: logger, now: now)
            let engine = PriceEngine(
                plans, clock: clock, budget: .seconds(1), observes: .milliseconds(Int(observes * 1000)), now: now,
                jitter: { 0.5 },
                subscribers: [
                    PersistLastValidPrice(store: store, report: { reporter.report($0) }),
                    Watching { state in
                        guard let currency = Currency(rawValue: state.currency) else { return }
                        latest.update { $0[currency] = state }
                        if currency == .usd { shownNow.update { $0 = state } }
                    },
                ], history: history, report: { _ in })
            await engine.subscribe(history.episodes)
            let ticker = OneSecondTicker(all.map { .init($0.currency, $0.interval) }, clock: clock, target: engine)
            let loaded = store.load()
            await engine.resume(loaded.cooldowns)
            for price in loaded.prices { await engine.restore(price) }
            let observing = Task { [observes] in
                await Observer.run(
                    BackgroundWork(clock: clock), interval: { .milliseconds(Int(observes * 1000)) }, jitter: { 0.5 }
                ) { await engine.observe() }
            }
            if isStreamed || !feeds.isEmpty {
                await engine.startFeeds()
                if isStreamed {
                    await engine.publish(WatchedChanges(interval: .milliseconds(100), currencies: ["USD"]))
                }
            }
            let pumped = streams
            let pump = Task { [isStreamed] in
                var count = 0
                while !Task.isCancelled {
                    let next = clock.now.advanced(by: .milliseconds(330))
                    do { try await clock.sleep(until: next) } catch { return }
                    if isStreamed { for stream in pumped { stream.tell() } }
                    if count % 3 == 0 { for feed in feeds { feed.tell() } }
                    count += 1
                }
            }
            await ticker.start()
            // The events and the readings until the end.
            let step = isStreamed ? 0.2 : 1.0
            var s = clock.seconds - begun
            var ratesLeft = rates
            var reloads = reload
            while s < end {
                while let first = ratesLeft.first, first.at <= s {
                    _ = await engine.take(tables(first, at: now().wall, begun + first.at))
                    ratesLeft.removeFirst()
                }
                if let first = reloads.first, first.at <= s, first.at >= s - 5 {
                    requests.update { $0 += venues.reduce(0) { $0 + $1.asks.load(ordering: .relaxed) } }
                    try build(first.sources)
                    await engine.apply(plans, budget: .seconds(1), observes: .milliseconds(Int(observes * 1000)))
                }
                reloads.removeAll { $0.at <= s }
                let next = isStreamed ? s + step : s.rounded(.down) + 0.9 + (s - s.rounded(.down) >= 0.899 ? 1 : 0)
                try await clock.sleep(until: clock.instant(at: .milliseconds(Int(((begun + next) * 1000).rounded()))))
                s = ((clock.seconds - begun) * 1000).rounded() / 1000
                guard s >= from else { continue }
                let present = now().boottime
                for kept in all {
                    guard let state = latest.current[kept.currency]?.aged(at: present) else { continue }
                    figures.update {
                        $0[kept.currency, default: Figures()].add(
                            state, self, kept.currency, at: s, length: isStreamed ? step : 1, begun: begun)
                    }
                    if isVerbose {
                        let isTether = state.quote?.market.hasSuffix("/USDT") == true && state.price?.conversion == nil
                        let middle = middle(kept.currency, s, perTether: isTether)
                        let off = (state.quote?.value.double ?? 0) / middle - 1
                        let price = state.quote.map { "\($0.value) \($0.source)" } ?? "-"
                        print(
                            "  \(s) \(kept.currency) \(state.freshness) \(price)",
                            state.confirmation?.rawValue ?? "", "off \((off * 100_000).rounded() / 1000) %",
                            "+- \(state.standing.uncertainty?.plusMinus.description ?? "-")",
                            state.standing.warning ?? "",
                            state.failure ?? "")
                    }
                }
            }
            return (engine, ticker, observing, pump, venues)
        }
        let feeds = peers.map { LiarPeer($0, self, clock, begun: begun) }
        for end in [restart, seconds].compactMap(\.self) {
            let running = try await run(sources, until: end, feeds)
            await running.ticker.stop()
            await running.engine.stopFeeds()
            running.observing.cancel()
            running.pump.cancel()
            await running.observing.value
            await running.pump.value
            requests.update { $0 += running.venues.reduce(0) { $0 + $1.asks.load(ordering: .relaxed) } }
            if end < seconds {
                // The daemon is down for 2 s.
                try await clock.sleep(until: clock.instant(at: .seconds(begun + end + 2)))
            }
        }
        history.close()
        // The kept minutes with a high or a low farther than 1 % from the honest range: sure ones and doubtful ones.
        var isMissed = false
        let judged = beside.first?.currency ?? .usd
        for kept in all {
            let currency = kept.currency
            guard let figure = figures.current[currency] else { continue }
            var (bad, badDoubtful, worst) = (0, 0, 0.0)
            let isTether = latest.current[currency]?.quote.map { $0.market.hasSuffix("/USDT") } ?? false
            for candle in minutes.kept.all.filter({ $0.currency == currency }).map(\.candle) {
                let start = Double(candle.start) - Double(VirtualDaemon.wallStart) / 1000 - begun
                guard start + 60 > from else { continue }
                var (low, high) = (Double.infinity, 0.0)
                for second in stride(from: start - 4, through: start + 60, by: 1) {
                    let value = middle(currency, second, perTether: isTether)
                    (low, high) = (min(low, value), max(high, value))
                }
                let off = max(candle.high.double / high - 1, low / candle.low.double - 1)
                if off > 0.01 { if candle.isInDoubt { badDoubtful += 1 } else { bad += 1 } }
                if !candle.isInDoubt { worst = max(worst, off) }
            }
            let day = history.day(of: currency, at: now())
            let highOff = day.map { $0.high.double / figure.high - 1 } ?? 0
            let lowOff = day.map { figure.low / $0.low.double - 1 } ?? 0
            let dayOff = max(highOff, lowOff)
            func p(_ x: Double) -> String { "\((x * 100_000).rounded() / 1000)" }
            print(
                [
                    name + (currency == .usd ? "" : ", \(currency)"), figure.text, "\(bad)+\(badDoubtful)", p(worst),
                    p(dayOff), "\(requests.current)",
                ].joined(separator: " | "))
            guard currency == judged, let wanted = Self.wanted[id] else { continue }
            let misses = wanted.misses(of: figure, day: dayOff * 100, requests: requests.current)
            for miss in misses { print("    misses: \(miss)") }
            isMissed = isMissed || !misses.isEmpty
        }
        if tellsEvents { tell(minutes.episodes.current, begun: begun) }
        return isMissed
    }

    /// Prints what `btcctl events` would say, with the seconds of the trial.
    private func tell(_ episodes: [Episode], begun: Double) {
        let zero = Int64(begun) + VirtualDaemon.wallStart / 1000
        for event in episodes.sorted(by: { ($0.start, "\($0.subject)") < ($1.start, "\($1.subject)") }).map(
            EventMessage.init)
        {
            let words = PriceTexts.event(
                event.kind, currency: event.currency, source: event.source, worst: event.worst,
                difference: event.difference, count: event.count)
            let end = event.end.map { "\($0.wholeSeconds - zero)" } ?? "the end"
            print("    event: \(event.start.wholeSeconds - zero) s to \(end): \(words)")
        }
    }

    private func tables(
        _ event: (at: Double, factor: Double, age: Int64, sources: Int), at wall: Timestamp, _ clock: Double
    )
        -> [ReferenceRateTable]
    {
        guard !beside.isEmpty else { return [] }
        let day = Timestamp(milliseconds: (wall.milliseconds / 86_400_000 - event.age) * 86_400_000)
        let euros = beside.first { $0.currency == .eur }?.rate(event.at) ?? 0.86
        let rates =
            [(Currency.usd, 1 / euros)]
            + beside.filter { $0.currency != .eur }.map { ($0.currency, $0.rate(event.at) / euros * event.factor) }
        return ["ecb", "frankfurter"].prefix(event.sources).map { name in
            ReferenceRateTable(
                name, of: .eur, rates.map { ($0, Price(Int64(($1 * 1_000_000).rounded()), scale: 6), day) },
                received: wall)
        }
    }
}

/// Runs all trials, the one with an id, or those whose names have a prefix.
func rehearseTrials(_ trials: [Trial] = Trial.all, on clock: VirtualClock, prefix: String) async throws {
    let named = trials.filter { $0.id == prefix }
    let chosen = named.isEmpty ? chosen(trials, "trial", prefix: prefix, name: \.name) : named
    print(
        [
            "trial", "sure & >1 % s", "sure & beyond ± s", ">1 % s", "unconfirmed s", "stale s", "single s",
            "confirmed s", "source changes", "confirmation changes", "worst sure %", "worst %", "± stated %",
            "± contains %",
            "± contains when read %", "± median %", "95 % within × ±", "after the lie unconf/stale/wrong",
            "bad minutes sure+doubtful", "worst sure minute %", "day high or low off %", "requests",
        ].joined(separator: " | "))
    var missing: [String] = []
    for trial in chosen where try await trial.run(on: clock) { missing.append(trial.id) }
    let names = missing.isEmpty ? "" : ": " + missing.joined(separator: "; ")
    print("\(chosen.count) trials, \(missing.count) miss a limit\(names)")
}

// MARK: - The limits

/// What a trial should come to in the currency that it is about; `nil`: it does not matter.
struct Wanted {
    /// The most seconds in which the price is fresh, not `unconfirmed` and more than 1 % wrong.
    var sureAndWrong = 0.0
    /// The most seconds in which it is stale.
    var stale: Double?
    /// The most seconds in which it is `unconfirmed`, and those after the end of the lie.
    var unconfirmed: Double?
    var unconfirmedAfter: Double?
    /// How often its source may change, and its confirmation.
    var sourceChanges: Int?
    var confirmationChanges: Int?
    /// The largest error of a sure price, in percent.
    var worst: Double?
    /// How often the uncertainty contains the honest middle at least, in percent of the seconds in which it is stated; `nil` for 90 if it
    /// is stated at all.
    var contains: Double?
    /// The largest median of the uncertainty, in percent of the price.
    var width: Double?
    /// How far the day's high or low may be beyond the true ones, in percent.
    var day: Double?
    /// The most requests.
    var requests: Int?

    func misses(of figures: Figures, day off: Double, requests made: Int) -> [String] {
        func text(_ x: Double) -> String { x == x.rounded() ? "\(Int(x))" : "\((x * 1000).rounded() / 1000)" }
        var misses: [String] = []
        func atMost(_ limit: Double?, _ found: Double, _ what: String) {
            if let limit, found > limit { misses.append("\(what) \(text(found)), wanted at most \(text(limit))") }
        }
        atMost(sureAndWrong, figures.sure1, "seconds sure and wrong")
        atMost(stale, figures.stale, "seconds stale")
        atMost(unconfirmed, figures.unconfirmed, "seconds unconfirmed")
        atMost(unconfirmedAfter, figures.after.unconfirmed, "seconds unconfirmed after the lie")
        atMost(sourceChanges.map(Double.init), Double(figures.changes), "changes of the source")
        atMost(confirmationChanges.map(Double.init), Double(figures.turns), "changes of the confirmation")
        atMost(worst, figures.worstSure * 100, "largest error of a sure price in percent")
        let least = contains ?? 90
        if let found = figures.contains, found < least {
            misses.append(
                "the uncertainty contains the honest middle in \(text(found)) % of the seconds, wanted \(text(least))")
        }
        if figures.contains == nil, contains != nil { misses.append("no uncertainty is stated") }
        atMost(width, figures.width, "median of the uncertainty in percent")
        atMost(day, off, "error of the day's high or low in percent")
        atMost(requests.map(Double.init), Double(made), "requests")
        return misses
    }
}
