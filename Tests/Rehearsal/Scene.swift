import BTCPriceCore
import BTCPriceNetworking
import TestSupport

/// What the venues respond for some time. Without an expectation, the counts are compared from one version to the next.
struct Scene: Sendable {
    /// One request for a price.
    struct Ask: Sendable {
        let source: String
        var currency = Currency.usd
        /// The time since the end of the warm-up; negative before it.
        let seconds: Double
        /// How many requests to this market came before it.
        let number: Int
        /// The honest price.
        let fair: Double
        /// The number that the clock shows at the end of the warm-up, for a response with a time.
        let begun: Double
    }

    /// A currency beside the dollar, with the sources that have a market for it.
    struct Beside: Sendable {
        let currency: Currency
        var interval = Duration.seconds(10)
        /// How much of it buys a dollar.
        let rate: @Sendable (Double) -> Double

        init(_ currency: Currency, interval: Duration = .seconds(10), rate: @escaping @Sendable (Double) -> Double) {
            (self.currency, self.interval, self.rate) = (currency, interval, rate)
        }
    }

    /// The required result.
    struct Expectation: Sendable {
        let what: String
        let text: String
        /// The error in the shown dollar prices; `nil` for none.
        let check: @Sendable (Shown) -> String?
    }

    static let four = ["binance", "coinbase", "bitstamp", "kraken"]

    /// Of an incident, its date.
    let name: String
    var expected: Expectation?
    var sources = four
    var rules = SelectionRules()
    /// The price stored by an earlier run, in dollars.
    var stored: Double?
    var beside: [Beside] = []
    /// The counted seconds, after the warm-up.
    var seconds = 300
    /// The dollar's.
    var interval = Duration.seconds(1)
    /// A lone source needs more than ten minutes: its first price is unconfirmed for some time.
    var warmUp = 300
    /// The interval of the observer.
    var observes = Duration.seconds(3)
    /// The price of one bitcoin in dollars.
    var market: @Sendable (Double) -> Double = calm
    /// The price of one USDT in dollars, and what Kraken states it to be.
    var peg: @Sendable (Double) -> Double = { _ in 1 }
    var statedPeg: (@Sendable (Double) -> Double)?
    /// How far a venue's market honestly is from the others, as a share.
    var apart: @Sendable (_ source: String, _ seconds: Double) -> Double = { _, _ in 0 }
    /// The factor of a venue's false price.
    var lie: @Sendable (_ source: String, _ seconds: Double) -> Double = { _, _ in 1 }
    /// The responses that are not a price; `nil` for the price of its market, with the lie.
    var script: @Sendable (Ask) -> VenueAnswer? = { _ in nil }

    static let calm: @Sendable (Double) -> Double = { 68_900 + 20 * ($0 / 90).remainder(dividingBy: 1) }

    /// The honest price of a market; that of the whole market for a median or a derived price.
    func fair(
        _ source: String, _ currency: Currency = .usd, at seconds: Double, inDollars: Bool = false
    ) -> Double {
        let isTether = currency == .usd && source == "binance" && !inDollars
        let rate = beside.first { $0.currency == currency }?.rate(seconds) ?? 1
        return Self.fair(
            origin(of: source), market(seconds) * rate * (1 + apart(origin(of: source), seconds)),
            peg: isTether ? peg(seconds) : 1, at: seconds + 300)
    }

    /// The fair price of a venue's market: the dollar price with the venue's premium and a flutter.
    static func fair(_ source: String, _ dollars: Double, peg: Double, at seconds: Double) -> Double {
        let premium = [
            "binance": 0.0, "cryptocompare": 0.0001, "coinbase": 0.0003, "bitstamp": -0.0002, "kraken": 0.0004,
        ]
        // Every response differs, as on a busy market.
        let flutter = 0.0001 * ((seconds * 7.3 + Double(source.count)).truncatingRemainder(dividingBy: 2) - 1)
        let price = dollars * (1 + (premium[source] ?? 0) + flutter)
        return source == "binance" ? price / peg : price
    }
}

/// A market of an exchange that has all its markets in one response.
private func sharing(_ shared: SharedRequest, _ own: ScriptedVenue) -> SetLoader {
    let returned = Shared(BootTime.min)
    return SetLoader(
        own.venue, own.market, companions: own.companions, isNeeded: { shared.isNeeded(after: returned.current) },
        begun: { shared.begin() },
        response: { () throws(PriceLoadingError) in
            let prices = try await shared.load(after: returned.current)
            if let observed = prices.first?.observed { returned.update { $0 = observed.boottime } }
            return prices
        })
}

extension Scene {
    /// In whole milliseconds, so that the result does not depend on the scenes before.
    private static func seconds(_ clock: Double, since begun: Double) -> Double {
        ((clock - begun) * 1000).rounded() / 1000
    }

    /// Runs the scene with the shipped ticker, fallback, health, observer and validation.
    /// - Returns: What was shown of each currency, and the number of requests.
    func run(on clock: VirtualClock) async throws -> (shown: [Currency: Shown], requests: Int) {
        // A scene does not depend on those that ran before.
        try await clock.sleep(until: clock.instant(at: .seconds((clock.seconds / 100).rounded(.up) * 100)))
        let begun = clock.seconds + Double(warmUp)
        let all = [Beside(.usd, interval: interval) { _ in 1 }] + beside
        let venues = try all.map { kept in
            let names = kept.currency == .usd ? sources : Self.four.reversed()
            return try names.filter { name in
                Exchange.all.contains { $0.name == name && $0.markets[kept.currency] != nil }
            }.map { try venue($0, kept.currency, clock, begun) }
        }
        let kraken = venues.joined().filter { $0.venue.name == "kraken" }
        let shared = SharedRequest(
            cacheTime: kraken.first?.venue.cacheTime ?? .zero, now: VirtualDaemon.time(of: clock)
        ) {
            () throws(PriceLoadingError) in
            let others = kraken.dropFirst().compactMap { other in other.present.map { LoadedPrice(other.market, $0) } }
            return try await (kraken.first?.load() ?? []) + others
        }
        let kept = zip(all, venues).map { kept, venues in
            var rules = rules
            rules.quorum = min(rules.quorum, venues.count)
            return VirtualCurrency(
                currency: kept.currency, interval: kept.interval,
                loaders: venues.map { venue -> any PriceLoader in
                    venue.venue.name == "kraken" && kraken.count > 1 ? sharing(shared, venue) : venue
                }, rules: rules, derivation: kept.currency.nearest == nil ? .never : .fallback)
        }
        let before = stored.map { dollars in
            CachedPrice(
                ShownPrice(
                    PriceQuote(
                        value: .cents(dollars), currency: "USD",
                        timestamp: Timestamp(
                            milliseconds: VirtualDaemon.wallStart + Int64(clock.seconds * 1000) - 2000),
                        source: "binance", market: "BTC/USDT")))
        }
        let (shown, tally) = (Shared([Currency: Shown]()), Shared(Tally()))
        let daemon = await VirtualDaemon(
            kept, clock: clock, store: MemoryStore(before), tally: tally, observes: observes, rates: rates(at: clock)
        ) { state in
            let seconds = Self.seconds(clock.seconds, since: begun)
            guard seconds >= 0, let currency = Currency(rawValue: state.currency) else { return }
            shown.update { $0[currency, default: Shown()].ticks.append(tick(state, currency, at: seconds, begun)) }
        }
        // Half a second before a tick.
        try await clock.sleep(until: clock.instant(at: .seconds(begun) - .milliseconds(500)))
        let requests = venues.joined().reduce(0) { $0 + $1.requests }
        try await clock.sleep(until: clock.instant(at: .seconds(begun) + .seconds(seconds) - .milliseconds(500)))
        let validated = await daemon.record.validated
        await daemon.stop()
        shown.update {
            $0[.usd, default: Shown()].lines = tally.current.lines
            $0[.usd, default: Shown()].validated = validated
        }
        return (shown.current, venues.joined().reduce(0) { $0 + $1.requests } - requests)
    }

    private func tick(_ state: PriceState, _ currency: Currency, at seconds: Double, _ begun: Double) -> Shown.Tick {
        guard let quote = state.quote else { return Shown.Tick(seconds: seconds, state: state, error: 0, late: 0) }
        func error(at arrival: Double) -> Double {
            // The request was sent 40 ms before.
            let then = Self.seconds(arrival, since: begun + 0.04)
            return quote.value.approximate
                / fair(quote.source, currency, at: then, inDollars: state.price?.conversion != nil) - 1
        }
        let read = Double(quote.timestamp.milliseconds - VirtualDaemon.wallStart) / 1000
        return Shown.Tick(seconds: seconds, state: state, error: error(at: read), late: error(at: begun + seconds))
    }

    private func venue(
        _ name: String, _ currency: Currency, _ clock: VirtualClock, _ begun: Double
    ) throws -> ScriptedVenue {
        let stated = statedPeg ?? peg
        return try ScriptedVenue(
            name, currency, clock: clock, peg: { stated($0 - begun) },
            script: { seconds, number in
                let seconds = Self.seconds(seconds, since: begun)
                let fair = fair(name, currency, at: seconds)
                let ask = Ask(
                    source: name, currency: currency, seconds: seconds, number: number, fair: fair, begun: begun)
                return script(ask) ?? .price(fair * (seconds < 0 ? 1 : lie(name, seconds)))
            })
    }

    /// The reference rates of the day, by the rates before the scene.
    private func rates(at clock: VirtualClock) -> [ReferenceRateTable] {
        guard !beside.isEmpty else { return [] }
        let now = VirtualDaemon.time(of: clock)().wall
        let day = Timestamp(milliseconds: now.milliseconds / 86_400_000 * 86_400_000)
        let euros = beside.first { $0.currency == .eur }?.rate(0) ?? 0.86
        let rates =
            [(Currency.usd, 1 / euros)]
            + beside.filter { $0.currency != .eur }.map { ($0.currency, $0.rate(-1) / euros) }
        return [
            ReferenceRateTable(
                "ecb", of: .eur,
                rates.map { ($0, Price(Int64(($1 * 1_000_000).rounded()), scale: 6), day) }, received: now)
        ]
    }
}

/// Runs the scenes one after the other, and prints a line for each of their currencies.
/// - Parameter prefix: Of the names of the scenes to run.
func rehearseScenes(on clock: VirtualClock, prefix: String) async throws {
    var (scenes, wrong, sureAndWrong) = (0, 0, 0)
    for scene in chosen(Scene.all, "scene", prefix: prefix, name: \.name) {
        let (shown, requests) = try await scene.run(on: clock)
        scenes += 1
        let inOrder = shown.sorted {
            ($0.key == .usd ? "" : $0.key.rawValue) < ($1.key == .usd ? "" : $1.key.rawValue)
        }
        for (currency, shown) in inOrder {
            let interval = scene.beside.first { $0.currency == currency }?.interval ?? scene.interval
            let length = Int(interval.components.seconds)
            wrong += shown.wrong.count * length
            sureAndWrong += shown.sureAndWrong.count * length
            let name = currency == .usd ? scene.name : "\(scene.name), \(currency)"
            print("\(name) | \(shown.counts(each: length))\(currency == .usd ? " | requests \(requests)" : "")")
        }
    }
    print("\(scenes) scenes: wrong \(wrong) s | sure and wrong \(sureAndWrong) s")
}

/// Runs scenes with an expectation one after the other, and prints a line for each.
/// - Parameters:
///   - kind: What such a scene is called: `incident`.
///   - prefix: Of the names of the scenes to run; `nil` for all. The log of those with a prefix is printed.
///   - row: What the line says besides the name and what happened.
func rehearse(
    _ scenes: [Scene], _ kind: String, prefix: String? = nil, on clock: VirtualClock,
    row: (Scene.Expectation, Shown) -> String
) async throws {
    let run = chosen(scenes, kind, prefix: prefix ?? "", name: \.name)
    var failed = 0
    for scene in run {
        guard let expected = scene.expected else { continue }
        let shown = try await scene.run(on: clock).shown[.usd] ?? Shown()
        let wrong = expected.check(shown)
        if wrong != nil { failed += 1 }
        let result = wrong == nil ? "ok" : "FAILED"
        print("\(result) | \(scene.name) | \(expected.what) | \(row(expected, shown))")
        guard prefix != nil || wrong != nil else { continue }
        for line in [wrong].compactMap(\.self) + shown.lines { print("    \(line)") }
        for tick in shown.ticks where tick.state.failure != nil || abs(tick.error) > 0.001 {
            let price = tick.state.quote.map { "\($0.value) \($0.source)" } ?? "-"
            print("    \(tick.seconds): \(price) \(tick.state.failure ?? "\(tick.error * 100) % off")")
        }
    }
    print("\(run.count) \(kind)s, \(failed) failed")
}
