import BTCPriceCore

/// The prices that a virtual daemon showed of a currency in a scene.
struct Shown: Sendable {
    struct Tick: Sendable {
        /// Since the end of the warm-up.
        let seconds: Double
        let state: PriceState
        /// The distance of the shown value from its market's honest price at the time of the reading, as a share; 0 without a value.
        let error: Double
        /// The same at the end of the tick.
        let late: Double
    }

    var ticks: [Tick] = []
    /// The daemon's log.
    var lines: [String] = []
    var validated = ValidatedTicks()

    var fresh: [Tick] { ticks.filter { $0.state.freshness == .fresh } }
    var stale: [Tick] { ticks.filter { $0.state.freshness != .fresh } }
    var worst: Double { fresh.map { abs($0.error) }.max() ?? 0 }
    /// The fresh ticks whose price was more than 1 % off.
    var wrong: [Tick] { fresh.filter { abs($0.error) > 0.01 } }
    /// Of those, the ones that were not unconfirmed.
    var sureAndWrong: [Tick] { wrong.filter { $0.state.confirmation != .unconfirmed } }
    var warned: Int { ticks.count { $0.state.standing.warning != nil } }

    func fresh(from source: String, after seconds: Double = 0, before end: Double = .infinity) -> Int {
        fresh.count { $0.state.quote?.source == source && $0.seconds >= seconds && $0.seconds < end }
    }

    func told(_ words: String) -> Int { lines.count { $0.contains(words) } }

    /// The ticks as an incident's row has them.
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

    /// The counts as a scene's row has them.
    /// - Parameter length: The seconds that a tick stands for.
    func counts(each length: Int) -> String {
        func seconds(_ ticks: [Tick]) -> Int { ticks.count * length }
        func confirmed(_ confirmation: Confirmation) -> Int { fresh.count { $0.state.confirmation == confirmation } }
        func changes<Value: Equatable>(_ value: (PriceState) -> Value) -> Int {
            zip(fresh, fresh.dropFirst()).count { value($0.state) != value($1.state) }
        }
        let derived = fresh.count { $0.state.derivation != nil }
        return "wrong \(seconds(wrong)) s | sure and wrong \(seconds(sureAndWrong)) s | "
            + "late \(seconds(fresh.filter { abs($0.late) > 0.01 })) s | stale \(stale.count) | "
            + "unconfirmed \(confirmed(.unconfirmed)) | single \(confirmed(.single)) | confirmed \(confirmed(.confirmed)) | "
            + "warned \(warned) | sources changed \(changes { $0.quote?.source }) | "
            + "confirmation changed \(changes(\.confirmation)) | worst \(Double(Int(worst * 100_000)) / 1000) %"
            + (derived > 0 ? " | derived \(derived)" : "")
    }
}
