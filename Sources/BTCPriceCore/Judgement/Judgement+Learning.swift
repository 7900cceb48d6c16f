/// What answers that are not shown tell of the markets.
extension Judgement {
    /// A source that is not shown has answered: where it lies beside the price that is shown.
    /// - Returns: Whether it is in line with that price; also if the two can't be compared.
    @discardableResult
    mutating func learned(_ price: FetchedPrice) -> Bool {
        let (quote, now) = (price.quote, price.observed.boottime)
        let isCurrent = standstill.isCurrent(price)
        saw(price)
        // A median asks all of them at every tick: none has been away by itself.
        if index?.source == PriceJudge.median { standstill.saw(price) } else { standstill.sawAnother(price) }
        // Only side by side with a price of the same moment.
        guard let index, quote.source != index.source, abs(now - index.at) <= JudgementBounds.sideBySide else {
            return true
        }
        let place = place(of: price, near: index.log)
        let apart = place.log - index.log
        let unchanged = standstill.unchanged(index.source)
        if premiums[quote.source] != nil {
            if unchanged >= JudgementBounds.standstill {
                let others = premiums.keys.count {
                    $0 != index.source && $0 != PriceJudge.median && standstill.hasAnswered($0, by: now)
                }
                standstill.other(quote.source, moved: apart, of: others, beside: index.source, at: now)
            }
            // A market that stands still does not drift away: the others do.
            if unchanged < JudgementBounds.pause, standstill.suspects(quote.source) {
                if abs(apart) >= JudgementBounds.standstillMove {
                    standstill.standsStill(quote.source, beside: [index.source])
                }
                return true
            }
        }
        let isNear = abs(apart) <= JudgementBounds.agreement + place.slack
        guard isNear || isOddForLong(quote.source, apart, at: now) else {
            // The next tick asks others which of the two is right.
            if isCurrent, !suspects.contains(quote.source) { isDisputed = true }
            return false
        }
        if isNear, isCurrent { agreedOn(place.log) }
        // Beside a price that has not changed for a while nothing is learned: it may be the beginning of a standstill.
        if unchanged >= JudgementBounds.pause, premiums[quote.source] != nil { return true }
        odd[quote.source] = nil
        suspects.remove(quote.source)
        let known = premiums[quote.source]
        let share = isNear ? known.map { JudgementBounds.premiumShare(after: now - $0.at) } ?? 1 : 1
        premiums[quote.source] = Premium(log: bounded((known?.log ?? 0) + apart * share), at: now)
        measureTether(quote, beside: index, at: now)
        return true
    }

    /// An odd answer is not taken at its word. If the source says the same for long, and it is where a market can be, that is its place.
    private mutating func isOddForLong(_ source: String, _ apart: Double, at boottime: Int64) -> Bool {
        guard let before = odd[source], abs(before.log - apart) <= JudgementBounds.oddDrift else {
            odd[source] = (apart, boottime)
            return false
        }
        odd[source] = (apart, before.since)
        let long = suspects.contains(source) ? JudgementBounds.suspicionLasts : JudgementBounds.oddLasts
        let premium = (premiums[source]?.log ?? 0) + apart
        return boottime - before.since >= long && bounded(premium) == premium
    }

    /// The nearest premium that a market can have.
    func bounded(_ premium: Double) -> Double {
        let others = premiums.filter { $0.key != PriceJudge.median }
        guard let middle = others.values.map(\.log).median else { return premium }
        return min(max(premium, middle - JudgementBounds.premium), middle + JudgementBounds.premium)
    }

    /// A price came with the worth of a USDT.
    mutating func told(_ price: FetchedPrice) {
        guard let rate = price.tetherRate else { return }
        tether.told(rate, by: price.quote.source, at: price.observed.boottime)
    }

    /// Prices of one moment, of which no rate is known yet.
    mutating func measureTether(sideBySide prices: [FetchedPrice]) {
        for tethered in prices where tethered.quote.isInTether {
            for dollars in prices where !dollars.quote.isInTether {
                let log = dollars.quote.value.logarithm - tethered.quote.value.logarithm
                tether.measured(log, by: dollars.quote.source, at: dollars.observed.boottime)
            }
        }
    }

    mutating func measureTether(_ quote: PriceQuote, beside index: Index, at boottime: Int64) {
        guard index.read.isInTether != quote.isInTether else { return }
        let log = quote.value.logarithm
        tether.measured(
            quote.isInTether ? index.read.log - log : log - index.read.log,
            by: quote.isInTether ? index.source : quote.source, at: boottime)
    }

    /// The source that has drifted away from two others that agree, and why that is believed; `nil` if none has.
    func stray(at boottime: Int64) -> (source: String, reason: String)? {
        let known = premiums.filter {
            $0.key != PriceJudge.median && boottime - $0.value.at <= JudgementBounds.premiumLasts
        }
        for (source, premium) in known.sorted(by: { $0.key < $1.key }) {
            let others = known.filter { $0.key != source }
            guard others.count >= 2, let middle = others.values.map(\.log).median,
                others.values.count(where: { abs($0.log - middle) <= JudgementBounds.stray / 2 }) >= 2,
                abs(premium.log - middle) > JudgementBounds.stray
            else { continue }
            return (source, "it lies \(Self.percent(premium.log - middle)) from the other markets")
        }
        return nil
    }

    /// Forgets all sources but these: the others are not asked any more. Where the price is stays known.
    mutating func keep(only sources: Set<String>) {
        let shown = index.map(\.source)
        premiums = premiums.filter { sources.contains($0.key) || $0.key == shown }
        odd = odd.filter { sources.contains($0.key) }
        suspects.formIntersection(sources)
        latest = latest.filter { sources.contains($0.key) }
        standstill.keep(only: sources)
    }

    /// Forgets where a source was: it strayed.
    mutating func forget(_ source: String) {
        suspects.insert(source)
        premiums[source] = nil
        odd[source] = nil
    }
}
