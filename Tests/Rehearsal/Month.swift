import BTCPriceCore
import FoundationEssentials
import Glibc
import TestSupport

/// The truth of the virtual month: the price in dollars and the value of a USDT at every second, and the faults.
private struct MonthTruth: Sendable {
    static let sources = ["binance", "coinbase", "bitstamp", "cryptocompare", "kraken"]

    /// In seconds.
    let length: Int
    let lanes: [FaultLane]
    private let prices: [Double]
    private let pegs: [Double]

    init(seed: UInt64, days: Int) {
        length = days * 86_400
        var generator = SeededGenerator(seed: seed)
        let first = DrawnFault.draw(
            MonthFault.judged, over: length, apart: 900, sources: Self.sources, &generator)
        let second = DrawnFault.draw(
            MonthFault.lesser, over: length, apart: 7200, sources: Self.sources, &generator)
        lanes = [FaultLane(first, over: length), FaultLane(second, over: length)]
        var (log, volatility) = (0.0, 0.00003)
        var prices: [Double] = []
        var pegs: [Double] = []
        prices.reserveCapacity(length + 1)
        pegs.reserveCapacity(length + 1)
        var factor = 1.0
        var last: DrawnFault?
        for second in 0...length {
            // Calm and busy hours: from a third of the usual volatility to three times as much.
            if second % 3600 == 0 {
                volatility = [0.00005, 0.00015, 0.00045][Int.random(in: 0..<3, using: &generator)]
            }
            let drawn = Double.random(in: -1...1, using: &generator) + Double.random(in: -1...1, using: &generator)
            log += drawn * volatility * 1.22
            // Keeps the price within a band, since a month is not a decade.
            log *= 0.999_999
            let fault = lanes[0].holding(at: second)
            if let ended = last, fault?.start != ended.start {
                factor *= ended.market(at: Double(ended.end))
            }
            last = fault
            let now = fault?.market(at: Double(second)) ?? 1
            prices.append(60_000 * exp(log) * factor * now)
            pegs.append(fault?.peg(at: Double(second)) ?? 1)
        }
        self.prices = prices
        self.pegs = pegs
    }

    func fault(at second: Int) -> DrawnFault? {
        lanes[0].holding(at: second) ?? lanes[1].holding(at: second)
    }

    func peg(at second: Int) -> Double { pegs[min(max(0, second), length)] }

    /// The true price of a venue's market.
    func fair(_ source: String, at seconds: Double, isConverted: Bool = false) -> Double {
        let second = min(max(0, Int(seconds)), length)
        let price = Scene.fair(origin(of: source), prices[second], peg: pegs[second], at: seconds)
        return isConverted ? price * pegs[second] : price
    }

    func answer(of source: String, at seconds: Double, ask: Int) -> VenueAnswer {
        let (second, fair) = (Int(seconds), fair(source, at: seconds))
        for lane in lanes {
            guard let fault = lane.holding(at: second) else { continue }
            if let answer = fault.answer(of: source, at: second, ask: ask, fair: fair) { return answer }
            let supplier = origin(of: source)
            // Then the wrong price appears under two names.
            if case .price(let wrong)? = fault.answer(of: supplier, at: second, ask: ask, fair: fair) {
                return .price(wrong)
            }
            guard fault.source == source || fault.source == supplier && fault.kind == .freeze else { continue }
            let now = VirtualDaemon.wallStart + Int64(seconds * 1000)
            switch fault.kind {
            case .freeze: return .price(self.fair(source, at: Double(fault.start)))
            case .staleNode where source != "binance" && ask % 4 == 3:
                let mark = FeedPosition(time: Timestamp(milliseconds: now - 36_000_000), sequence: now - 36_000_000)
                return .marked(fair * 0.95, mark)
            case .microseconds where source != "binance":
                return .marked(fair, FeedPosition(time: Timestamp(milliseconds: now * 1000)))
            default: break
            }
        }
        return .price(fair)
    }
}

/// The results during one kind of fault, or during the time without any.
private struct MonthCount {
    var faults = 0
    var fresh = 0
    var stale = 0
    var confirmed = 0
    var unconfirmed = 0
    var withheld = 0
    var worst = 0.0
    /// The ticks that showed a price as fresh that was not the true price of its market.
    var untrue = 0
    /// The ticks with a USDT price and no warning while USDT was far off its peg.
    var unwarned = 0

    var text: String {
        "fresh \(fresh) stale \(stale) confirmed \(confirmed) unconfirmed \(unconfirmed) withheld \(withheld) untrue \(untrue) "
            + "unwarned \(unwarned) worst \(Double(Int(worst * 1_000_000)) / 10_000) %"
    }

    mutating func add(_ other: MonthCount) {
        fresh += other.fresh
        stale += other.stale
        confirmed += other.confirmed
        unconfirmed += other.unconfirmed
        withheld += other.withheld
        worst = max(worst, other.worst)
        untrue += other.untrue
        unwarned += other.unwarned
    }
}

/// Runs a month of faults drawn from real incidents. The rules change now and then, each time with a restart.
/// - Parameters:
///   - days: The length, 30 for a whole month.
///   - closely: The seconds of which every tick is printed.
func rehearseMonth(seed: UInt64, days: Int, clock: VirtualClock, closely: Range<Double>) async throws {
    let truth = MonthTruth(seed: seed, days: days)
    let venues = try MonthTruth.sources.map { name in
        try ScriptedVenue(name, clock: clock, peg: { truth.peg(at: Int($0)) }) {
            truth.answer(of: name, at: $0, ask: $1)
        }
    }
    let counts = Shared([String: MonthCount]())
    for fault in truth.lanes.flatMap(\.faults) {
        counts.update { $0[fault.kind.rawValue, default: MonthCount()].faults += 1 }
    }
    let store = MemoryStore()
    let tally = Shared(Tally())
    let parts: [(fifths: Int, name: String, rules: SelectionRules)] = [
        (2, "primary, warn", SelectionRules()), (2, "primary, convert", SelectionRules(peg: .convert)),
        (1, "median of 3", SelectionRules(mode: .median, quorum: 3)),
    ]
    var fifths = 0
    for part in parts {
        let ofPart = Shared(MonthCount())
        let daemon = await VirtualDaemon(
            [VirtualCurrency(loaders: venues, rules: part.rules)], clock: clock, store: store, tally: tally
        ) { state in
            if closely.contains(clock.seconds) { show(state, truth, at: clock.seconds) }
            let (kind, count) = judge(state, truth, at: clock.seconds, rules: part.rules)
            counts.update { $0[kind, default: MonthCount()].add(count) }
            ofPart.update { $0.add(count) }
        }
        fifths += part.fifths
        try await clock.sleep(until: clock.instant(at: .seconds(truth.length * fifths / 5) - .milliseconds(500)))
        await daemon.stop()
        print("\(part.name): \(ofPart.current.text)")
    }
    var total = MonthCount()
    for (kind, count) in counts.current.sorted(by: { $0.key < $1.key }) {
        print("\(kind): faults \(count.faults) \(count.text)")
        total.add(count)
    }
    let missing = MonthFault.allCases.filter { kind in !truth.lanes.contains { $0.faults.contains { $0.kind == kind } }
    }
    print("missing: \(missing.isEmpty ? "none" : missing.map(\.rawValue).joined(separator: " "))")
    let requests = venues.reduce(0) { $0 + $1.requests }
    print("total: ticks \(tally.current.ticks) \(total.text) requests \(requests)")
    print("lines \(tally.current.lines.count)")
}

private func show(_ state: PriceState, _ truth: MonthTruth, at seconds: Double) {
    let faults = truth.lanes.compactMap { $0.holding(at: Int(seconds)) }.map {
        "\($0.kind) \($0.source) since \($0.start)"
    }
    let price = state.quote.map { "\($0.value) \($0.source) \(state.confirmation?.rawValue ?? "")" } ?? "-"
    print(
        "\(seconds) \(state.freshness) \(price) \(state.standing.warning ?? "") \(state.failure ?? "") \(faults.joined(separator: ", "))"
    )
}

/// The oracle: compares a shown price with the true one.
private func judge(
    _ state: PriceState, _ truth: MonthTruth, at seconds: Double, rules: SelectionRules
) -> (kind: String, MonthCount) {
    var count = MonthCount()
    let read = Double((state.quote?.timestamp.milliseconds ?? 0) - VirtualDaemon.wallStart) / 1000 - 0.04
    let kind = truth.fault(at: Int(state.freshness == .fresh ? read : seconds))?.kind.rawValue ?? "none"
    guard state.freshness == .fresh, let quote = state.quote else {
        count.stale = 1
        if state.failure?.contains("implausible") == true { count.withheld = 1 }
        return (kind, count)
    }
    count.fresh = 1
    switch state.confirmation {
    case .confirmed: count.confirmed = 1
    case .unconfirmed: count.unconfirmed = 1
    default: break
    }
    let fair = truth.fair(quote.source, at: read, isConverted: state.price?.conversion != nil)
    count.worst = abs(quote.value.approximate / fair - 1)
    if count.worst > 0.01 {
        count.untrue = 1
        print("UNTRUE at \(seconds) (\(kind)): \(quote.value) from \(quote.source), fair \(fair)")
    }
    let isFarOff = (0...180).allSatisfy { abs(truth.peg(at: Int(read) - $0) - 1) > 0.015 }
    if isFarOff, quote.market == "BTC/USDT", rules.peg == .warn, state.standing.warning == nil {
        count.unwarned = 1
        print("UNWARNED at \(seconds) (\(kind)): USDT at \(truth.peg(at: Int(read)))")
    }
    return (kind, count)
}
