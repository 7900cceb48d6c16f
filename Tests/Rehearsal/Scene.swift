import BTCPriceCore
import BTCPriceNetworking
import TestSupport

/// What the venues respond for some time, without a condition: the counts are compared from one version to the next.
struct Scene: Sendable {
    /// One request for a price.
    struct Ask: Sendable {
        let source: String
        var currency = Currency.usd
        /// The time since the end of the warm-up; negative before it.
        let seconds: Double
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

    static let four = ["binance", "coinbase", "bitstamp", "kraken"]

    let name: String
    var sources = four
    var rules = SelectionRules()
    var beside: [Beside] = []
    /// The counted seconds, after the warm-up.
    var seconds = 300
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
        return Incident.fair(
            origin(of: source), market(seconds) * rate * (1 + apart(origin(of: source), seconds)),
            peg: isTether ? peg(seconds) : 1, at: seconds + 300)
    }
}

/// The counts of a currency in a scene.
private struct SceneCount: Sendable {
    /// The seconds in which a fresh price was more than 1 % from its market's honest price at the time of the reading.
    var wrong = 0
    /// Of those, the seconds in which it was not unconfirmed.
    var sureAndWrong = 0
    /// The seconds in which it was more than 1 % from its market's honest price at the end of the tick.
    var late = 0
    var stale = 0
    var single = 0
    var confirmed = 0
    var unconfirmed = 0
    var derived = 0
    var warned = 0
    var sourceChanges = 0
    var confirmationChanges = 0
    /// The largest distance of a fresh price, as a share.
    var worst = 0.0
    private var last: (source: String, confirmation: Confirmation?)?

    mutating func add(
        _ state: PriceState, _ scene: Scene, _ currency: Currency, at seconds: Double, since begun: Double
    ) {
        if state.standing.warning != nil { warned += 1 }
        guard state.freshness == .fresh, let quote = state.quote else {
            stale += 1
            return
        }
        let length = Int((scene.beside.first { $0.currency == currency }?.interval ?? .seconds(1)).components.seconds)
        let read = Double(quote.timestamp.milliseconds - VirtualDaemon.wallStart) / 1000
        func distance(at arrival: Double) -> Double {
            // The request was sent 40 ms before.
            let then = Scene.seconds(arrival, since: begun + 0.04)
            let fair = scene.fair(quote.source, currency, at: then, inDollars: state.price?.conversion != nil)
            return abs(quote.value.approximate / fair - 1)
        }
        let distance = (read: distance(at: read), now: distance(at: begun + seconds))
        worst = max(worst, distance.read)
        if distance.read > 0.01 { wrong += length }
        if distance.read > 0.01, state.confirmation != .unconfirmed { sureAndWrong += length }
        if distance.now > 0.01 { late += length }
        if state.derivation != nil { derived += 1 }
        switch state.confirmation {
        case .single: single += 1
        case .confirmed: confirmed += 1
        case .unconfirmed: unconfirmed += 1
        case nil: break
        }
        if let last {
            if last.source != quote.source { sourceChanges += 1 }
            if last.confirmation != state.confirmation { confirmationChanges += 1 }
        }
        last = (quote.source, state.confirmation)
    }

    var text: String {
        "wrong \(wrong) s | sure and wrong \(sureAndWrong) s | late \(late) s | stale \(stale) | unconfirmed \(unconfirmed) | "
            + "single \(single) | confirmed \(confirmed) | warned \(warned) | sources changed \(sourceChanges) | "
            + "confirmation changed \(confirmationChanges) | worst \(Double(Int(worst * 100_000)) / 1000) %"
            + (derived > 0 ? " | derived \(derived)" : "")
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
    fileprivate static func seconds(_ clock: Double, since begun: Double) -> Double {
        ((clock - begun) * 1000).rounded() / 1000
    }

    /// Runs the scene with the shipped ticker, fallback, health, observer and validation.
    fileprivate func run(on clock: VirtualClock) async throws -> (counts: [Currency: SceneCount], requests: Int) {
        // A scene does not depend on those that ran before.
        try await clock.sleep(until: clock.instant(at: .seconds((clock.seconds / 100).rounded(.up) * 100)))
        let begun = clock.seconds + Double(warmUp)
        let all = [Beside(.usd, interval: .seconds(1)) { _ in 1 }] + beside
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
        let counts = Shared([Currency: SceneCount]())
        let daemon = await VirtualDaemon(
            kept, clock: clock, store: MemoryStore(), tally: Shared(Tally()), observes: observes,
            rates: rates(at: clock)
        ) { state in
            let seconds = Self.seconds(clock.seconds, since: begun)
            guard seconds >= 0, let currency = Currency(rawValue: state.currency) else { return }
            counts.update { $0[currency, default: SceneCount()].add(state, self, currency, at: seconds, since: begun) }
        }
        // Half a second before a tick.
        try await clock.sleep(until: clock.instant(at: .seconds(begun) - .milliseconds(500)))
        let before = venues.joined().reduce(0) { $0 + $1.requests }
        try await clock.sleep(until: clock.instant(at: .seconds(begun) + .seconds(seconds) - .milliseconds(500)))
        await daemon.stop()
        return (counts.current, venues.joined().reduce(0) { $0 + $1.requests } - before)
    }

    private func venue(
        _ name: String, _ currency: Currency, _ clock: VirtualClock, _ begun: Double
    ) throws -> ScriptedVenue {
        let stated = statedPeg ?? peg
        return try ScriptedVenue(
            name, currency, clock: clock, peg: { stated($0 - begun) },
            script: { seconds, _ in
                let seconds = Self.seconds(seconds, since: begun)
                let fair = fair(name, currency, at: seconds)
                let ask = Ask(source: name, currency: currency, seconds: seconds, fair: fair, begun: begun)
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
        let (counts, requests) = try await scene.run(on: clock)
        scenes += 1
        let inOrder = counts.sorted {
            ($0.key == .usd ? "" : $0.key.rawValue) < ($1.key == .usd ? "" : $1.key.rawValue)
        }
        for (currency, count) in inOrder {
            wrong += count.wrong
            sureAndWrong += count.sureAndWrong
            let name = currency == .usd ? scene.name : "\(scene.name), \(currency)"
            print("\(name) | \(count.text)\(currency == .usd ? " | requests \(requests)" : "")")
        }
    }
    print("\(scenes) scenes: wrong \(wrong) s | sure and wrong \(sureAndWrong) s")
}
