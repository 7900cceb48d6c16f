/// How the judged ticks ended, since the start.
package struct JudgedTicks: Sendable, Hashable {
    /// Shown, and a second source agreed.
    package var confirmed: Int64
    /// Shown although no second source could confirm a jump.
    package var unconfirmed: Int64
    /// Not shown: contradicted, or not confirmed yet.
    package var withheld: Int64

    /// Counts of which every one is given.
    package init(confirmed: Int64 = 0, unconfirmed: Int64 = 0, withheld: Int64 = 0) {
        self.confirmed = confirmed
        self.unconfirmed = unconfirmed
        self.withheld = withheld
    }
}

/// Rules on what a fetch brought, by the rules that are set: a pure value.
struct PriceJudge: Sendable {
    /// A price that is shown.
    struct Shown: Sendable, Hashable {
        var quote: PriceQuote
        var observed: ObservationTime
        var confirmation: Confirmation
        var consensus: Consensus?
        var conversion: Conversion?
        /// The least time until its source can give another one.
        var pace = Duration.zero
        /// Sources that are found out in the same moment, this price's own among them.
        var distrusted: [SourceFailure] = []
    }

    enum Ruling: Sendable, Hashable {
        case shown(Shown)
        /// The last price stays. Whose price is not believed rests.
        case withheld(reason: SourceFailure, distrusted: [SourceFailure])
    }

    /// What a median is called where a source's name is wanted.
    static let median = "median"

    private(set) var judgement = Judgement()
    private(set) var rules: JudgementRules

    init(rules: JudgementRules, judgement: Judgement = Judgement()) {
        self.rules = rules
        self.judgement = judgement
    }

    /// Other rules hold, and other sources are asked.
    mutating func changed(rules: JudgementRules, sources: Set<String>) {
        self.rules = rules
        judgement.keep(only: sources)
    }

    mutating func restored(_ quote: PriceQuote, at boottime: Int64) {
        judgement.restored(quote, at: boottime)
    }

    /// After so long without a price the next one is judged like the first one; never less than a minute.
    mutating func setGap(_ milliseconds: Int64) { judgement.gap = max(JudgementBounds.gap, milliseconds) }

    /// Whether USDT markets are to be passed over. A rate of long ago is no reason.
    func refusesTether(at boottime: Int64) -> Bool {
        rules.tether == .refuse && judgement.tether.usableRate(at: boottime)?.isOffPeg == true
    }

    /// What USDT is worth; `nil` before it was measured.
    var tetherRate: TetherRate? { judgement.tether.rate }

    /// The answers of sources that stand still.
    var frozen: [String: Price] { judgement.standstill.frozen }

    /// Rules on a fetch's evidence.
    /// - Parameters:
    ///   - evidence: What it brought.
    ///   - isTick: Whether a tick made it.
    ///   - age: How old another answer may be to count in a median, milliseconds.
    mutating func rule(on evidence: PriceEvidence, isTick: Bool, upTo age: Int64) -> Ruling {
        for failure in evidence.failures { judgement.failed(failure.source) }
        for price in evidence.all { judgement.told(price) }
        if rules.mode == .median { return ruleOnMedian(evidence, isTick: isTick, upTo: age) }
        return ruleOnOne(evidence.price, witnesses: evidence.witnesses, isTick: isTick)
    }

    private mutating func ruleOnOne(_ price: FetchedPrice, witnesses: [FetchedPrice], isTick: Bool) -> Ruling {
        let source = price.quote.source
        switch judgement.verdict(on: price, witnesses: witnesses) {
        case .believed(let confirmation, let level):
            return show(price, confirmation, level: level, witnesses: witnesses, isTick: isTick)
        case .scattered(let nearest):
            let all = [price] + witnesses
            // The nearest may be one that answered shortly before: then the first one waits for the next tick.
            guard let shown = all.first(where: { $0.quote.source == nearest }) else {
                let reason = "no two markets agree, and \(nearest) is nearer to the median"
                return .withheld(reason: SourceFailure(source: source, error: .implausible(reason)), distrusted: [])
            }
            let others = all.filter { $0.quote.source != nearest }
            return show(shown, .unconfirmed, witnesses: others, isTick: isTick)
        case .contradicted(let reason, let count):
            for witness in witnesses { judgement.learned(witness) }
            judgement.contradicted(source, by: count, at: price.observed.boottime)
            let failure = SourceFailure(source: source, error: .implausible(reason))
            return .withheld(reason: failure, distrusted: [failure])
        case .undecided(let reason):
            let enough = JudgementBounds.ticksToBelieve
            var detail = reason
            if isTick {
                let ticks = judgement.persists(price)
                if let ticks, ticks >= enough { return show(price, .unconfirmed, witnesses: witnesses, isTick: isTick) }
                detail +=
                    ticks.map { "; shown after \(enough) ticks that say the same, this is number \($0)" }
                    ?? "; one contradicted it shortly before"
            }
            for witness in witnesses { judgement.learned(witness) }
            return .withheld(
                reason: SourceFailure(source: source, error: .implausible(detail)), distrusted: [])
        }
    }

    private mutating func show(
        _ price: FetchedPrice, _ confirmation: Confirmation, level: Double? = nil, witnesses: [FetchedPrice],
        isTick: Bool
    ) -> Ruling {
        if judgement.standstill.wantsWitness(on: price) { judgement.standstill.looked(at: price.observed.boottime) }
        judgement.accepted(price, as: confirmation, level: level)
        // Before it is converted: they tell at what rate.
        for witness in witnesses { judgement.learned(witness) }
        // Another one has just confirmed it: one that did not is looked at again when the observer sees it the next time.
        if confirmation == .confirmed { judgement.isDisputed = false }
        var shown = Shown(
            quote: price.quote, observed: price.observed, confirmation: confirmation, pace: price.pace)
        if !witnesses.isEmpty { shown.distrusted = foundStandingStill() }
        guard price.quote.isInTether else { return .shown(shown) }
        switch rules.tether {
        case .warn: return .shown(shown)
        case .refuse:
            guard refusesTether(at: price.observed.boottime), let rate = tetherRate else { return .shown(shown) }
            return .withheld(
                reason: SourceFailure(source: price.quote.source, error: .implausible(rate.text)), distrusted: [])
        case .convert:
            guard let (value, conversion) = converted(price) else {
                if let dollars = witnesses.first(where: { !$0.quote.isInTether }) {
                    // A price in USDT has no place beside dollars, as long as it can't be converted.
                    let others = witnesses.filter {
                        !$0.quote.isInTether && $0.quote.source != dollars.quote.source
                    }
                    return ruleOnOne(dollars, witnesses: others, isTick: isTick)
                }
                let reason = "what USDT is worth is not known, and its price can't be converted"
                return .withheld(
                    reason: SourceFailure(source: price.quote.source, error: .implausible(reason)), distrusted: [])
            }
            shown.quote = price.quote.with(value: value)
            shown.conversion = conversion
            return .shown(shown)
        }
    }

    private func converted(_ price: FetchedPrice) -> (Price, Conversion)? {
        guard let rate = judgement.tether.conversionRate(at: price.observed.boottime) else { return nil }
        let value = (price.quote.value * rate.value).rounded(toPlaces: 8)
        guard (QuoteCheck.lowest...QuoteCheck.highest).contains(value) else { return nil }
        return (
            value,
            Conversion(
                value: price.quote.value, rate: rate.value, sources: rate.sources,
                measuredBoottime: rate.measuredBoottime)
        )
    }

    private mutating func ruleOnMedian(_ evidence: PriceEvidence, isTick: Bool, upTo age: Int64) -> Ruling {
        // A source that may be asked once a second misses a tick now and then.
        let all = evidence.all + earlier(than: evidence, upTo: age + 1000)
        if judgement.tether.usableRate(at: evidence.price.observed.boottime) == nil {
            judgement.measureTether(sideBySide: evidence.all)
        }
        // A USDT level stands beside dollar levels only as dollars.
        let hasDollars = all.contains { !$0.quote.isInTether }
        let comparable = all.compactMap { price -> (price: FetchedPrice, value: Price)? in
            guard price.quote.isInTether, hasDollars else { return (price, price.quote.value) }
            if refusesTether(at: price.observed.boottime) { return nil }
            return converted(price).map { (price, $0.0) }
        }
        let asked = Set(evidence.all.map(\.quote.source))
        let (median, consensus) = Consensus.median(
            of: comparable.map { ($0.price.quote.source, $0.value) }, isEarlier: { !asked.contains($0) })
        guard let median, consensus.sources.count >= rules.quorum else {
            for price in all { judgement.learned(price) }
            let said = all.map { "\($0.quote.source) (\($0.quote.value) \($0.quote.market))" }.joined(separator: ", ")
            return .withheld(
                reason: SourceFailure(
                    source: Self.median,
                    error: .implausible("\(consensus.sources.count) of the \(rules.quorum) that have to agree: \(said)")
                ),
                distrusted: [])
        }
        guard consensus.sources.count > 1 else {
            let price = evidence.all.first { $0.quote.source == consensus.sources[0] } ?? evidence.price
            let others = evidence.all.filter { $0.quote.source != price.quote.source }
            return ruleOnOne(price, witnesses: others, isTick: isTick)
        }
        let counted = evidence.all.filter { consensus.sources.contains($0.quote.source) }
        let newest = counted.map(\.observed).max { $0.boottime < $1.boottime } ?? evidence.price.observed
        let isDollar = counted.contains { !$0.quote.isInTether } || rules.tether == .convert
        let quote = PriceQuote(
            value: median, currency: evidence.price.quote.currency, timestamp: newest.wall, source: Self.median,
            market: isDollar ? "BTC/USD" : evidence.price.quote.market)
        judgement.accepted(FetchedPrice(quote: quote, observed: newest, mark: nil), as: .confirmed)
        for price in all { judgement.learned(price) }
        return .shown(
            Shown(
                quote: quote, observed: newest, confirmation: .confirmed, consensus: consensus,
                pace: counted.map(\.pace).min() ?? .zero, distrusted: foundStandingStill()))
    }

    /// The last answers of sources that were not asked this time, if they are new enough.
    private mutating func earlier(than evidence: PriceEvidence, upTo age: Int64) -> [FetchedPrice] {
        for price in evidence.all { judgement.saw(price) }
        let asked = Set(evidence.all.map(\.quote.source))
        let now = evidence.price.observed.boottime
        return judgement.latest.filter {
            !asked.contains($0.key) && $0.key != Self.median
                // A source that can't be asked at every tick counts for as long as its limits take.
                && now - $0.value.observed.boottime <= age + $0.value.pace.wholeMilliseconds
        }
        .sorted { $0.key < $1.key }.map(\.value)
    }

    /// The observer has asked a source that the ticks do not.
    /// - Returns: Whose price is not believed from now on; and an answer that does not fit the price that is shown, while it is open which of
    ///   the two is wrong.
    mutating func observed(_ price: FetchedPrice) -> (distrusted: [SourceFailure], odd: SourceFailure?) {
        judgement.told(price)
        let source = price.quote.source
        if !judgement.learned(price) {
            let reason = "\(price.quote.value) \(price.quote.market) is far from what the others say"
            let failure = SourceFailure(source: source, error: .implausible(reason))
            // It was found out before, and still says so: the ticks need not find out again.
            return judgement.suspects.contains(source) ? ([failure], nil) : ([], failure)
        }
        return (found(at: price.observed.boottime), nil)
    }

    private mutating func found(at boottime: Int64) -> [SourceFailure] {
        let standing = foundStandingStill()
        if !standing.isEmpty { return standing }
        if let (source, reason) = judgement.stray(at: boottime) {
            judgement.forget(source)
            return [SourceFailure(source: source, error: .implausible(reason))]
        }
        return []
    }

    private mutating func foundStandingStill() -> [SourceFailure] {
        judgement.standstill.takeFindings().map { found in
            let others = found.others.joined(separator: " and ")
            let reason = "it stands still at \(found.value) for \(found.unchanged / 1000) s, while \(others) moved"
            return SourceFailure(source: found.source, error: .staleData(reason))
        }
    }

    /// What a reader of `quote` must know of its market; `nil` where all is well.
    func warning(for quote: PriceQuote?, at boottime: Int64) -> String? {
        guard let rate = judgement.tether.usableRate(at: boottime), rate.isOffPeg else { return nil }
        let start = "USDT is off its peg, at \(rate.value) USD by \(rate.sources.joined(separator: ", "))"
        guard let quote, quote.isInTether else { return start }
        return rules.tether == .convert ? "\(start): this price is converted" : "\(start): this is a price in USDT"
    }
}
