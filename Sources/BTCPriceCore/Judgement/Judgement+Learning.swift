/// What prices that were shown, and others that were seen beside them, tell for the next ones.
extension Judgement {
    /// `price` is shown from now on.
    mutating func accepted(_ price: FetchedPrice, as confirmation: Confirmation) {
        let (quote, now) = (price.quote, price.observed.boottime)
        let log = quote.value.logarithm
        var premium = premiums[quote.source]?.log ?? nearest(to: quote)?.log ?? index.map { log - $0.log } ?? 0
        if let index, index.source != quote.source, abs(now - index.at) <= JudgementBounds.sideBySide {
            measureTether(quote, beside: index, at: now)
            // Another source is shown than a moment ago. Of an ordinary difference its old premium is the cause, not the market.
            let isOld = premiums[quote.source].map { now - $0.at > 10 * (now - index.at) } ?? false
            if confirmation == .single, isOld { premium = log - index.log }
        }
        index = Index(source: quote.source, log: log - premium, at: now)
        premiums[quote.source] = Premium(log: premium, at: now, isInTether: quote.isInTether)
        odd[quote.source] = nil
        suspects.remove(quote.source)
        pending = nil
        switch confirmation {
        case .unconfirmed: unconfirmedSince = isUnconfirmed(at: now) ? unconfirmedSince : now
        case .confirmed, .single: confirmed()
        }
        standstill.saw(price)
    }

    /// A source that is not shown was asked: where it stands beside the one that is.
    /// - Returns: Whether it is in line with what was known; also where nothing could be compared.
    @discardableResult
    mutating func learned(_ price: FetchedPrice) -> Bool {
        let isInLine = isLearned(price)
        if !isInLine, isUnconfirmed(at: price.observed.boottime) {
            doubters.insert(price.quote.source)
            // It does not become the level while others say otherwise.
            unconfirmedSince = price.observed.boottime
        }
        return isInLine
    }

    /// The source that is shown, where nobody has confirmed its price and two others are not in line with it.
    mutating func takeDoubted() -> (source: String, by: [String])? {
        guard doubters.count >= 2, let index else { return nil }
        suspects.insert(index.source)
        defer { doubters = [] }
        return (index.source, doubters.sorted())
    }

    private mutating func isLearned(_ price: FetchedPrice) -> Bool {
        // A median asks all of them at every tick: none has been away by itself.
        if index?.source == PriceJudge.median { standstill.saw(price) } else { standstill.sawAnother(price) }
        let (quote, now) = (price.quote, price.observed.boottime)
        // Only side by side with a price of the same moment.
        guard let index, quote.source != index.source, abs(now - index.at) <= JudgementBounds.sideBySide else {
            return true
        }
        let offset = quote.value.logarithm - index.log
        let known = premiums[quote.source]
        if let known {
            // Beside one that may stand still nothing is learned, but whether the others move.
            let unchanged = standstill.unchanged(index.source)
            if unchanged >= JudgementBounds.standstill {
                let others = premiums.keys.count {
                    $0 != index.source && $0 != PriceJudge.median && standstill.hasAnswered($0, by: now)
                }
                standstill.other(
                    quote.source, moved: offset - known.log, of: others, beside: index.source, at: now)
            }
            if unchanged >= JudgementBounds.pause { return true }
            // A market that stands still does not drift away: the others do.
            if standstill.suspects(quote.source) {
                if abs(offset - known.log) >= JudgementBounds.standstillMove {
                    standstill.standsStill(quote.source, beside: [index.source])
                }
                return true
            }
            let slack = JudgementBounds.drift(over: now - known.at)
            let isNear = abs(offset - known.log) <= JudgementBounds.move(after: now - index.at) + slack
            // One that drifts step by step is followed: only so it is seen that it strays.
            guard isNear || (isOddForLong(quote.source, offset, at: now) && isOfOrder(quote, offset)) else {
                return false
            }
            if isNear { confirmed() }
        } else {
            guard isOfOrder(quote, offset) else { return false }
            if nearest(to: quote) != nil { confirmed() }
        }
        odd[quote.source] = nil
        suspects.remove(quote.source)
        premiums[quote.source] = Premium(log: offset, at: now, isInTether: quote.isInTether)
        measureTether(quote, beside: index, at: now)
        return true
    }

    /// Nothing is unconfirmed any more.
    private mutating func confirmed() {
        unconfirmedSince = nil
        doubters = []
    }

    /// An odd answer is not taken at its word. If the source says the same for long, it is where it stands now.
    private mutating func isOddForLong(_ source: String, _ offset: Double, at boottime: Int64) -> Bool {
        guard let before = odd[source], abs(before.log - offset) <= JudgementBounds.oddDrift else {
            odd[source] = (offset, boottime)
            return false
        }
        odd[source] = (offset, before.since)
        let long = suspects.contains(source) ? JudgementBounds.suspicionLasts : JudgementBounds.oddLasts
        return boottime - before.since >= long
    }

    /// Prices of one moment, of which no rate is known yet.
    mutating func measureTether(sideBySide prices: [FetchedPrice]) {
        for tethered in prices where tethered.quote.isInTether {
            for dollars in prices where !dollars.quote.isInTether {
                let log = dollars.quote.value.logarithm - tethered.quote.value.logarithm
                guard abs(log) <= JudgementBounds.sameOrder else { continue }
                tether.measured(log, by: dollars.quote.source, at: dollars.observed.boottime)
            }
        }
    }

    /// Whether a source stands where one can that quotes in its currency, beside the one that is shown.
    private func isOfOrder(_ quote: PriceQuote, _ offset: Double) -> Bool {
        guard let index, let shown = premiums[index.source] else { return true }
        let bound =
            shown.isInTether == quote.isInTether ? JudgementBounds.sameCurrency : JudgementBounds.sameOrder
        return abs(offset - shown.log) <= bound
    }

    private mutating func measureTether(_ quote: PriceQuote, beside index: Index, at boottime: Int64) {
        guard let shown = premiums[index.source], shown.isInTether != quote.isInTether else { return }
        let shownLog = index.log + shown.log
        let log = quote.value.logarithm
        tether.measured(
            quote.isInTether ? shownLog - log : log - shownLog, by: quote.isInTether ? index.source : quote.source,
            at: boottime)
    }

    /// Sources that have drifted away from the others, and why that is believed: `nil` where none has.
    func stray(at boottime: Int64) -> (source: String, reason: String)? {
        let known = premiums.filter { boottime - $0.value.at <= JudgementBounds.premiumLasts }
        let dollars = known.filter { !$0.value.isInTether }
        guard dollars.count >= 3 else { return nil }
        let middle = dollars.values.map(\.log).sorted()[dollars.count / 2]
        for (source, premium) in known.sorted(by: { $0.key < $1.key }) {
            let bound = premium.isInTether ? JudgementBounds.sameOrder : JudgementBounds.sameCurrency
            guard abs(premium.log - middle) > bound else { continue }
            return (source, "it stands \(Self.percent(premium.log - middle)) from the other dollar markets")
        }
        return nil
    }

    /// Forgets all sources but these: the others are not asked any more. Where the price stands stays known.
    mutating func keep(only sources: Set<String>) {
        let shown = index.map(\.source)
        premiums = premiums.filter { sources.contains($0.key) || $0.key == shown }
        odd = odd.filter { sources.contains($0.key) }
        suspects.formIntersection(sources)
        standstill.keep(only: sources)
    }

    /// Forgets where a source stood: it strayed.
    mutating func forget(_ source: String) {
        suspects.insert(source)
        premiums[source] = nil
        odd[source] = nil
    }
}
