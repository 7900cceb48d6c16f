import BTCPriceCore
import FoundationEssentials
import TestSupport

/// A real incident as a scenario: the responses of the venues, and the required result.
struct Incident: Sendable {
    /// The date, as in the list of incidents.
    let day: String
    let what: String
    let expected: String
    var sources = ["binance", "coinbase", "bitstamp", "kraken"]
    var rules = SelectionRules()
    /// The price stored by an earlier run, in dollars.
    var stored: Double?
    var seconds = 600
    var interval = Duration.seconds(1)
    /// The price of one bitcoin in dollars.
    var market: @Sendable (Double) -> Double = { _ in 60_000 }
    /// The price of one USDT in dollars.
    var peg: @Sendable (Double) -> Double = { _ in 1 }
    /// The responses of single venues; `nil` for their market's price.
    var script: @Sendable (_ source: String, _ seconds: Double, _ ask: Int, _ fair: Double) -> VenueAnswer? = {
        _, _, _, _ in nil
    }
    /// The error in the shown prices; `nil` for none.
    let check: @Sendable (Shown) -> String?
}

/// The prices that a virtual daemon showed in an incident.
struct Shown: Sendable {
    struct Tick: Sendable {
        let seconds: Double
        let state: PriceState
        /// The distance of the shown value from its market's fair value at the time of the reading, as a share.
        let error: Double
    }

    var ticks: [Tick] = []
    var lines: [String] = []
    var validated = ValidatedTicks()

    var fresh: [Tick] { ticks.filter { $0.state.freshness == .fresh } }
    var stale: [Tick] { ticks.filter { $0.state.freshness != .fresh } }
    var worst: Double { fresh.map { abs($0.error) }.max() ?? 0 }

    func fresh(from source: String, after seconds: Double = 0, before end: Double = .infinity) -> Int {
        fresh.filter { $0.state.quote?.source == source && $0.seconds >= seconds && $0.seconds < end }.count
    }

    func stale(after seconds: Double, before end: Double = .infinity) -> Int {
        stale.filter { $0.seconds >= seconds && $0.seconds < end }.count
    }

    func told(_ words: String) -> Int { lines.count { $0.contains(words) } }

    var warned: Int { ticks.count { $0.state.standing.warning != nil } }

    /// A summary in one line.
    var text: String {
        var bySource: [String: Int] = [:]
        for tick in fresh { bySource[tick.state.quote?.source ?? "", default: 0] += 1 }
        let sources = bySource.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.map { "\($0.key) \($0.value)" }
        var text = "\(fresh.count) fresh (\(sources.joined(separator: ", "))), \(stale.count) stale"
        if validated.confirmed > 0 { text += ", \(validated.confirmed) confirmed" }
        if validated.unconfirmed > 0 { text += ", \(validated.unconfirmed) unconfirmed" }
        if validated.withheld > 0 { text += ", \(validated.withheld) withheld" }
        if warned > 0 { text += ", \(warned) with a warning" }
        let share = Int((worst * 10_000).rounded())
        return text + "; at most \(share / 100).\(share % 100 < 10 ? "0" : "")\(share % 100) % off"
    }
}

extension Incident {
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

    func fair(_ source: String, at seconds: Double) -> Double {
        Self.fair(source, market(seconds), peg: peg(seconds), at: seconds)
    }

    /// Runs the incident with the shipped ticker, fallback, health, observer and validation.
    func run(on clock: VirtualClock) async throws -> Shown {
        let begun = clock.seconds
        let venues = try sources.map { name in
            try ScriptedVenue(name, clock: clock, peg: { [peg] in peg($0 - begun) }) { seconds, ask in
                let seconds = seconds - begun
                let fair = fair(name, at: seconds)
                return script(name, seconds, ask, fair) ?? .price(fair)
            }
        }
        var kept: CachedPrice?
        if let stored {
            kept = CachedPrice(
                ShownPrice(
                    PriceQuote(
                        value: .cents(stored), currency: "USD",
                        timestamp: Timestamp(milliseconds: VirtualDaemon.wallStart + Int64(begun * 1000) - 2000),
                        source: "binance", market: "BTC/USDT")))
        }
        let shown = Shared(Shown())
        let tally = Shared(Tally())
        let daemon = await VirtualDaemon(
            [VirtualCurrency(interval: interval, loaders: venues, rules: rules)], clock: clock,
            store: MemoryStore(kept),
            tally: tally
        ) { state in
            let seconds = clock.seconds - begun
            let read =
                Double((state.quote?.timestamp.milliseconds ?? 0) - VirtualDaemon.wallStart) / 1000 - begun - 0.04
            let source = state.quote?.source ?? ""
            var fair = fair(source, at: read)
            // A converted price is a dollar price.
            if state.price?.conversion != nil { fair *= peg(read) }
            let error = (state.quote?.value.approximate ?? 0) / fair - 1
            shown.update { $0.ticks.append(Shown.Tick(seconds: seconds, state: state, error: error)) }
        }
        try await clock.sleep(until: clock.now.advanced(by: .seconds(seconds) - .milliseconds(500)))
        let record = await daemon.record
        await daemon.stop()
        var result = shown.current
        result.lines = tally.current.lines
        result.validated = record.validated
        return result
    }
}

/// Runs the incidents one after the other, and prints a line for each.
/// - Parameter day: Runs only the incidents of this day, and prints every line of the log.
func rehearseIncidents(on clock: VirtualClock, day: String?) async throws {
    var failed = 0
    for incident in chosen(Incident.all, "incident", prefix: day ?? "", name: \.day) {
        let shown = try await incident.run(on: clock)
        let wrong = incident.check(shown)
        if wrong != nil { failed += 1 }
        print(
            "\(wrong == nil ? "ok" : "FAILED") | \(incident.day) | \(incident.what) | \(incident.expected) | \(shown.text)"
        )
        if let wrong { print("    \(wrong)") }
        if day != nil || wrong != nil {
            for line in shown.lines { print("    \(line)") }
            for tick in shown.ticks where tick.state.failure != nil || abs(tick.error) > 0.001 {
                print("    \(tick.seconds): \(tick.state.failure ?? "\(tick.error * 100) % off")")
            }
        }
    }
    print("\(Incident.all.count) incidents, \(failed) failed")
}
