import BTCPriceCore
import Glibc
import TestSupport

/// How a lying venue changes its true price.
private enum Lie: String, CaseIterable {
    /// Leaves the true price at any slope and stays away.
    case slide
    /// Jumps and stays.
    case step
    /// Repeats one response, sometimes with a new time.
    case freeze
    /// Reports an old price.
    case lag
    /// Reports an old price with a wrong time.
    case clock
    /// Swings around the true price.
    case oscillation
    /// Reports the price in other units.
    case scale
}

/// A lie with its parameters.
private struct Plan: Sendable {
    let lie: Lie
    let start: Double
    let end: Double
    /// The largest distance, as a share of the price.
    let size: Double
    /// Seconds: the duration of a slide, the lag, or the period of a swing.
    let span: Double
    /// Whether a frozen or old price comes with a new time.
    let isDatedAnew: Bool

    var text: String {
        "\(lie.rawValue) of \(Int(size * 10_000)) basis points, \(Int(span)) s, for \(Int(end - start)) s from \(Int(start)) s"
    }

    static func draw(over seconds: Double, _ generator: inout SeededGenerator) -> [Plan] {
        var plans: [Plan] = []
        var second = 1800.0
        while true {
            // From half a minute to three hours, short ones as often as long ones.
            let length = 30 * pow(360, Double.random(in: 0...1, using: &generator))
            guard second + length < seconds - 600 else { return plans }
            let lie = Lie.allCases[Int.random(in: 0..<Lie.allCases.count, using: &generator)]
            let direction = Bool.random(using: &generator) ? 1.0 : -1.0
            plans.append(
                Plan(
                    lie: lie, start: second, end: second + length,
                    // From 0.5 % to 60 %.
                    size: direction * 0.005 * pow(120, Double.random(in: 0...1, using: &generator)),
                    span: pow(3600, Double.random(in: 0...1, using: &generator)),
                    isDatedAnew: Bool.random(using: &generator)))
            second += length + Double.random(in: 300...3600, using: &generator)
        }
    }
}

/// A market over some days: the price, the offsets of the honest venues, and the plans of the lying venue.
private struct AdversaryWorld: Sendable {
    /// The age in seconds at which a venue's servers renew a response.
    static let cache = ["binance": 0.0, "coinbase": 1, "bitstamp": 1, "kraken": 2]

    /// In seconds.
    let length: Double
    let currency: Currency
    let sources: [String]
    let liar: String?
    let plans: [Plan]
    private let prices: [Double]
    private let crashes: [(start: Double, length: Double, offsets: [String: Double])]
    private let basis: [String: (size: Double, phase: Double)]

    init(seed: UInt64, hours: Int, _ currency: Currency, sources: [String], hasLiar: Bool) {
        var generator = SeededGenerator(seed: seed)
        length = Double(hours * 3600)
        self.currency = currency
        self.sources = sources
        let liar = origin(of: sources[Int.random(in: 0..<sources.count, using: &generator)])
        self.liar = hasLiar ? liar : nil
        plans = Plan.draw(over: length, &generator)
        var basis: [String: (size: Double, phase: Double)] = [:]
        for source in sources {
            basis[source] = (
                Double.random(in: -0.0012...0.0012, using: &generator), Double.random(in: 0...6.28, using: &generator)
            )
        }
        self.basis = basis
        var crashes: [(start: Double, length: Double, offsets: [String: Double])] = []
        var drops: [(start: Double, length: Double, share: Double)] = []
        for day in 0..<max(1, hours / 24) {
            for _ in 0..<2 {
                let start =
                    Double(day * 86_400) + Double.random(in: 3600...min(82_000, length - 3600), using: &generator)
                // As on 2025-10-10: a fall of some percent within minutes, and meanwhile venues 2 to 3 % apart.
                drops.append(
                    (
                        start, Double.random(in: 20...180, using: &generator),
                        Double.random(in: -0.1 ... -0.02, using: &generator)
                    ))
                var offsets: [String: Double] = [:]
                for source in sources { offsets[source] = Double.random(in: -0.014...0.014, using: &generator) }
                crashes.append((start, Double.random(in: 120...420, using: &generator), offsets))
            }
        }
        self.crashes = crashes
        var (log, volatility) = (0.0, 0.00005)
        var prices: [Double] = []
        for second in 0...Int(length) {
            if second % 3600 == 0 { volatility = [0.00004, 0.0001, 0.0003][Int.random(in: 0..<3, using: &generator)] }
            let drawn = Double.random(in: -1...1, using: &generator) + Double.random(in: -1...1, using: &generator)
            log += drawn * volatility * 1.22
            log *= 0.999_995
            var market = 60_000 * exp(log)
            for drop in drops {
                // The price takes a day to recover.
                let share = (Double(second) - drop.start) / drop.length
                let back = max(0, 1 - (Double(second) - drop.start) / 86_400)
                if share > 0 { market *= 1 + drop.share * min(1, share) * back }
            }
            prices.append(market)
        }
        self.prices = prices
    }

    /// The true price of a venue's market.
    func fair(_ source: String, at seconds: Double) -> Double {
        let source = origin(of: source)
        let clamped = min(max(0, seconds), length - 1)
        let (second, part) = (Int(clamped), clamped - clamped.rounded(.down))
        var price = (prices[second] + (prices[second + 1] - prices[second]) * part) * rate(at: clamped)
        if let (size, phase) = basis[source] { price *= 1 + size + 0.0003 * sin(seconds / 7000 + phase) }
        for crash in crashes where seconds > crash.start && seconds < crash.start + crash.length {
            let share = (seconds - crash.start) / crash.length
            price *= 1 + (crash.offsets[source] ?? 0) * min(1, min(share, 1 - share) * 4)
        }
        return price
    }

    /// The price of a dollar in the currency.
    private func rate(at seconds: Double) -> Double {
        currency == .usd ? 1 : 0.86 * (1 + 0.01 * sin(seconds / 40_000))
    }

    func plan(at seconds: Double) -> Plan? {
        plans.first { $0.start <= seconds && seconds < $0.end }
    }

    func answer(of source: String, at seconds: Double) -> VenueAnswer {
        let cache = Self.cache[source] ?? 0
        let seen = cache > 0 ? (seconds / cache).rounded(.down) * cache : seconds
        let fair = fair(source, at: seen)
        // The decimals change with every new response.
        let flutter = 1 + 0.00002 * sin(seen * 12.9898)
        guard origin(of: source) == liar, let plan = plan(at: seconds) else { return dated(fair * flutter, as: seen) }
        let passed = seconds - plan.start
        switch plan.lie {
        case .slide: return dated(fair * (1 + plan.size * min(1, passed / plan.span)) * flutter, as: seen)
        case .step: return dated(fair * (1 + plan.size) * flutter, as: seen)
        case .freeze: return dated(self.fair(source, at: plan.start), as: plan.isDatedAnew ? seen : plan.start)
        case .lag:
            let then = max(seen - plan.span, plan.start - 600)
            return dated(self.fair(source, at: then) * flutter, as: plan.isDatedAnew ? seen : then)
        case .clock: return dated(self.fair(source, at: seen - plan.span) * flutter, as: seen + plan.size * 10_000)
        case .oscillation: return dated(fair * (1 + plan.size * sin(passed / plan.span * 6.28)), as: seen)
        case .scale:
            let factor = plan.isDatedAnew ? (plan.size > 0 ? 10 : 0.1) : 1 + plan.size * 0.2
            return dated(fair * factor, as: seen)
        }
    }

    private func dated(_ value: Double, as seconds: Double) -> VenueAnswer {
        .madeAt(value, seconds)
    }

    /// The median of the honest venues' markets.
    func honestMedian(at seconds: Double) -> Double {
        let fairs = sources.filter { origin(of: $0) != liar || plan(at: seconds) == nil }.map { fair($0, at: seconds) }
            .sorted()
        return (fairs[(fairs.count - 1) / 2] + fairs[fairs.count / 2]) / 2
    }

    /// Whether an hour has the lowest volatility and no crash.
    func isCalm(at seconds: Double) -> Bool {
        let hour = Int(seconds) / 3600 * 3600
        guard !crashes.contains(where: { $0.start < Double(hour + 3600) && $0.start + $0.length > Double(hour) }) else {
            return false
        }
        return stride(from: hour, to: min(hour + 3600, prices.count - 1), by: 10).allSatisfy {
            abs(log(prices[$0 + 1] / prices[$0])) < 0.0001
        }
    }

    /// The distance of a price from the range of the honest venues' prices of the last 3 s, as a share.
    func distance(of value: Double, at seconds: Double) -> Double {
        let isLying = plan(at: seconds) != nil || plan(at: seconds - 3) != nil
        var (low, high) = (Double.infinity, 0.0)
        for source in sources where origin(of: source) != liar || !isLying {
            for then in [seconds, seconds - 1, seconds - 2] {
                let fair = fair(source, at: then)
                (low, high) = (min(low, fair), max(high, fair))
            }
        }
        return max(0, max(low / value - 1, value / high - 1))
    }
}

/// The results of a run.
private struct AdversaryCount: Sendable {
    var ticks = 0
    var wrong = 0
    /// Of those, the ones that were not unconfirmed.
    var sureAndWrong = 0
    var unconfirmed = 0
    var stale = 0
    var longest = 0
    var running = 0
    /// The wrong ticks by the start of the plan.
    var byPlan: [Double: Int] = [:]
    /// The prices with an uncertainty, and how many of those ranges contained the median of the honest markets.
    var estimated = 0
    var within = 0
    /// The distances of the median from the price, as shares of the uncertainty.
    var ratios: [Double] = []
    /// The whole widths in calm hours, as shares of the price.
    var calmWidths: [Double] = []

    /// - Parameter begun: The start of the days, in seconds of the clock.
    mutating func add(_ state: PriceState, _ world: AdversaryWorld, at seconds: Double, since begun: Double) {
        ticks += 1
        guard state.freshness == .fresh, let quote = state.quote else {
            stale += 1
            running = 0
            return
        }
        if state.confirmation == .unconfirmed { unconfirmed += 1 }
        let read = Double(quote.timestamp.milliseconds - VirtualDaemon.wallStart) / 1000 - begun - 0.04
        if let uncertainty = state.standing.uncertainty {
            estimated += 1
            let (value, plusMinus) = (quote.value.approximate, uncertainty.plusMinus.approximate)
            let apart = abs(world.honestMedian(at: seconds) - value)
            if apart <= plusMinus { within += 1 }
            ratios.append(apart / max(plusMinus, 0.01))
            if world.isCalm(at: seconds) { calmWidths.append(2 * plusMinus / value) }
        }
        guard world.distance(of: quote.value.approximate, at: read) > 0.01 else {
            running = 0
            return
        }
        wrong += 1
        if state.confirmation != .unconfirmed { sureAndWrong += 1 }
        running += 1
        longest = max(longest, running)
        if let plan = world.plan(at: read) ?? world.plan(at: read - 30) { byPlan[plan.start, default: 0] += 1 }
    }

    var uncertainty: String {
        let sorted = calmWidths.sorted()
        let width = sorted.isEmpty ? 0 : sorted[sorted.count / 2]
        let share = Double(within) / Double(max(1, estimated))
        let needed = ratios.sorted()
        let factor = needed.isEmpty ? 0 : needed[min(needed.count * 95 / 100, needed.count - 1)]
        return "within \(Double(Int(share * 10_000)) / 100) % of \(estimated), calm width "
            + "\(Double(Int(width * 1_000_000)) / 10_000) %, 95 % within \(Double(Int(factor * 1000)) / 1000) times"
    }
}

struct AdversaryMode: Sendable {
    let name: String
    let sources: [String]
    var rules = SelectionRules()
    /// The currency in which the venue lies. If it is not the dollar, the dollar is kept too, and the same venue's dollar price is true.
    var currency = Currency.usd
    /// Whether the venues' streams, with the same lies, serve a watcher. Then the states between the ticks count too.
    var isStreamed = false

    static let four = ["binance", "coinbase", "bitstamp", "kraken"]
    static let all = [
        AdversaryMode(name: "primary", sources: four),
        AdversaryMode(name: "median", sources: four, rules: SelectionRules(mode: .median, quorum: 3)),
        AdversaryMode(name: "dollars", sources: Array(four.dropFirst())),
        AdversaryMode(name: "euros", sources: ["kraken", "coinbase", "bitstamp", "binance"], currency: .eur),
        AdversaryMode(name: "streams", sources: four, isStreamed: true),
        // One exchange under two names.
        AdversaryMode(name: "twins", sources: ["coinbase", "cryptocompare", "bitstamp", "kraken"]),
    ]
}

/// Runs virtual days in which one venue lies, and the same days without lies, in six modes.
/// - Parameters:
///   - hours: The length, 3 or more.
///   - closely: The seconds of which every tick is printed.
///   - only: The one mode to run; `nil` for all.
func rehearseAdversary(
    seed: UInt64, hours: Int, clock: VirtualClock, closely: Range<Double>, only: String? = nil
) async throws {
    let modes = chosen(AdversaryMode.all, "mode", prefix: only ?? "", name: \.name)
    for (index, mode) in AdversaryMode.all.enumerated() where modes.contains(where: { $0.name == mode.name }) {
        let drawn = seed &* 3 &+ UInt64(index)
        let world = AdversaryWorld(seed: drawn, hours: hours, mode.currency, sources: mode.sources, hasLiar: true)
        let honest = AdversaryWorld(seed: drawn, hours: hours, mode.currency, sources: mode.sources, hasLiar: false)
        let dollars =
            mode.currency == .usd
            ? nil : AdversaryWorld(seed: drawn, hours: hours, .usd, sources: AdversaryMode.four, hasLiar: false)
        let (counts, requests) = try await run([dollars, world].compactMap(\.self), mode, clock, closely)
        let (twins, twinRequests) = try await run([dollars, honest].compactMap(\.self), mode, clock, 0..<0)
        guard let count = counts[mode.currency.rawValue], let twin = twins[mode.currency.rawValue] else { continue }
        let worst = count.byPlan.max { ($0.value, $1.key) < ($1.value, $0.key) }
        let plan = worst.flatMap { worst in world.plans.first { $0.start == worst.key } }
        let share = Double(count.stale - twin.stale) / Double(count.ticks) * 100
        print(
            "\(mode.name), \(world.liar ?? "-") lies: ticks \(count.ticks) wrong \(count.wrong) in a row \(count.longest) "
                + "stale \(count.stale) twin \(twin.stale) (\(Double(Int(share * 100)) / 100) points more) "
                + "twin wrong \(twin.wrong) plans \(world.plans.count) "
                + "unconfirmed \(count.unconfirmed) twin unconfirmed \(twin.unconfirmed) "
                + "sure and wrong \(count.sureAndWrong) twin sure and wrong \(twin.sureAndWrong) "
                + "requests \(requests) twin requests \(twinRequests)"
        )
        if dollars != nil, let beside = counts[Currency.usd.rawValue], let twin = twins[Currency.usd.rawValue] {
            print(
                "  dollars beside: ticks \(beside.ticks) wrong \(beside.wrong) stale \(beside.stale) twin \(twin.stale)"
            )
        }
        print("  uncertainty: \(count.uncertainty); without a liar \(twin.uncertainty)")
        if let plan, let worst { print("  worst plan: \(worst.value) s wrong by a \(plan.text)") }
    }
}

/// The results of each currency, and the number of requests. Each currency has its own world.
private func run(
    _ worlds: [AdversaryWorld], _ mode: AdversaryMode, _ clock: VirtualClock, _ closely: Range<Double>
) async throws -> (counts: [String: AdversaryCount], requests: Int) {
    let begun = clock.seconds
    let venues = try worlds.map { world in
        try world.sources.map { name in
            try ScriptedVenue(name, world.currency, clock: clock) { seconds, _ in
                let answer = world.answer(of: name, at: seconds - begun)
                guard case .madeAt(let value, let then) = answer else { return answer }
                return .madeAt(value, then + begun)
            }
        }
    }
    let kept = zip(worlds, venues).map { world, venues in
        VirtualCurrency(
            currency: world.currency, interval: .seconds(world.currency == .usd ? 1 : 10), loaders: venues,
            rules: mode.rules)
    }
    let counts = Shared([String: AdversaryCount]())
    let daemon = await VirtualDaemon(
        kept, clock: clock, store: MemoryStore(), tally: Shared(Tally()), isStreamed: mode.isStreamed
    ) { state in
        guard let world = worlds.first(where: { $0.currency.rawValue == state.currency }) else { return }
        let seconds = clock.seconds - begun
        if closely.contains(seconds) {
            print(
                "\(seconds) \(state.currency) \(state.freshness) \(state.quote.map { "\($0.value) \($0.source)" } ?? "-") "
                    + "\(state.confirmation?.rawValue ?? "") \(state.failure ?? "") \(state.standing.warning ?? "") fair \(world.fair("kraken", at: seconds))"
            )
        }
        counts.update { $0[state.currency, default: AdversaryCount()].add(state, world, at: seconds, since: begun) }
    }
    try await clock.sleep(until: clock.instant(at: .seconds(begun + worlds[0].length) - .milliseconds(500)))
    await daemon.stop()
    return (counts.current, venues.joined().reduce(0) { $0 + $1.requests })
}
