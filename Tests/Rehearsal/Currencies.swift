import BTCPriceCore
import BTCPriceNetworking
import TestSupport

/// One market of a virtual exchange: the dollar's price times a rate, and a lie for a while.
private struct VirtualMarket: PriceLoader {
    let exchange: VirtualExchange
    let market: Market
    let clock: VirtualClock
    /// What the price is multiplied by at a time, in seconds.
    let factor: @Sendable (Double) -> Double
    /// Of an exchange whose one request serves all markets.
    let shared: SharedRequest?

    var venue: Venue { exchange.venue }
    var needsRequest: Bool { shared?.isNeeded(after: .min) ?? true }

    func load() async throws(PriceLoadingError) -> [LoadedPrice] {
        if let shared { return try await shared.load(after: .min) }
        return try await exchange.load().map(priced)
    }

    func priced(_ dollars: LoadedPrice) -> LoadedPrice {
        let cents = Int64((dollars.value.double * factor(clock.now.seconds) * 100).rounded())
        return LoadedPrice(market, Price(cents, scale: 2), position: dollars.position)
    }
}

/// What came of one currency.
private struct CurrencyTally {
    var ticks = 0
    var fresh = 0
    var wrong = 0
}

private struct CurrencyWatcher: StateSubscriber {
    let watch: @Sendable (PriceState) -> Void

    func receive(_ state: PriceState, isTick: Bool, isFirst: Bool, kept: KeptState?) {
        if isTick { watch(state) }
    }
}

/// All currencies for an hour, with their default sources. From the 20th minute to the 40th the price of one market, Coinbase's in euros,
/// slides to 20 % below the others.
func rehearseCurrencies(seed: UInt64, clock: VirtualClock) async throws {
    let rates: [Currency: Double] = [
        .usd: 1, .eur: 0.86, .gbp: 0.75, .chf: 0.8, .cad: 1.38, .aud: 1.53, .jpy: 150,
    ]
    let now: TimeSource = {
        let milliseconds = clock.now.offset.wholeMilliseconds
        return ObservationTime(
            wall: Timestamp(milliseconds: VirtualDaemon.wallStart + milliseconds), boottime: 5_000_000 + milliseconds)
    }
    var loaders: [Market: any PriceLoader] = [:]
    var exchanges: [VirtualExchange] = []
    for (index, exchange) in Exchange.all.enumerated() {
        let virtual = try VirtualExchange(
            exchange, clock: clock, seed: seed &+ UInt64(index) &* 7919, faults: [], calm: .seconds(1 << 40))
        exchanges.append(virtual)
        let own = exchange.markets.map { currency, market in
            VirtualMarket(
                exchange: virtual, market: market, clock: clock,
                factor: { seconds in
                    let isLie = exchange.name == "coinbase" && currency == .eur && (1200..<2400).contains(seconds)
                    return (rates[currency] ?? 1) * (isLie ? 1 - 0.2 * (seconds - 1200) / 1200 : 1)
                }, shared: nil)
        }
        let shared = SharedRequest(cacheTime: exchange.venue.cacheTime, now: now) {
            () throws(PriceLoadingError) in
            let dollars = try await virtual.load()
            return own.flatMap { market in dollars.map(market.priced) }
        }
        for market in own {
            loaders[market.market] =
                exchange.name == "kraken"
                ? VirtualMarket(
                    exchange: virtual, market: market.market, clock: clock, factor: market.factor, shared: shared)
                : market
        }
    }
    let wanted = Currency.allCases.map { currency in
        let all = Exchange.all.filter { $0.markets[currency] != nil }
        let order = ["kraken", "coinbase", "bitstamp", "binance"]
        let sources =
            currency == .usd ? all : order.compactMap { name in all.first { $0.name == name } }
        let candidates = sources.compactMap { exchange in
            exchange.markets[currency].flatMap { loaders[$0] }.map {
                FetchCandidate(
                    fetch: FetchLatestPrice(loader: $0), address: exchange.name, timeout: .milliseconds(800),
                    hedge: .milliseconds(400))
            }
        }
        return (currency: currency, interval: Duration.seconds(currency == .usd ? 1 : 10), candidates: candidates)
    }
    let sources = Sources(
        wanted.flatMap { plan in plan.candidates.map { ($0.source, plan.interval) } }, now: now, jitter: { 0.5 })
    var offset = 0
    let plans = wanted.map { plan in
        defer { offset += plan.candidates.count }
        return CurrencyPlan(
            plan.currency,
            fetch: FetchWithFallback(candidates: plan.candidates, among: sources, from: offset, clock: clock),
            interval: plan.interval)
    }
    let tallies = Shared([String: CurrencyTally]())
    let watcher = CurrencyWatcher { state in
        let fair = 68_900 * (Currency(rawValue: state.currency).flatMap { rates[$0] } ?? 1)
        tallies.update { tallies in
            tallies[state.currency, default: CurrencyTally()].ticks += 1
            guard state.freshness == .fresh, let value = state.quote?.value.double else { return }
            tallies[state.currency, default: CurrencyTally()].fresh += 1
            if abs(value / fair - 1) > 0.01 { tallies[state.currency, default: CurrencyTally()].wrong += 1 }
        }
    }
    let skipped = Shared(Int64(0))
    let engine = PriceEngine(
        plans, clock: clock, budget: .seconds(1), now: now, subscribers: [watcher],
        report: { event in
            if case .ticked(_, _, let count) = event { skipped.update { $0 += count } }
        })
    let tickers = Tickers(wanted.map { .init($0.currency, $0.interval) }, clock: clock, target: engine)
    let observer = Observer(clock: clock, target: engine, jitter: { 0.5 })
    let observing = Task { await observer.run() }
    await tickers.start()
    try await clock.sleep(until: .init(offset: .seconds(3600)))
    await tickers.stop()
    observing.cancel()
    await observing.value
    for currency in Currency.allCases {
        let tally = tallies.current[currency.rawValue] ?? CurrencyTally()
        print("\(currency) ticks \(tally.ticks) fresh \(tally.fresh) wrong \(tally.wrong)")
    }
    print("skipped \(skipped.current)")
    for exchange in exchanges {
        print("\(exchange.venue.name) \(exchange.isWithinLimits ? "within" : "OVER") \(exchange.counts)")
    }
}
