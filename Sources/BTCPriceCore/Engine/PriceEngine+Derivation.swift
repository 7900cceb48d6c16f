extension PriceEngine {
    /// Takes rates that were received, all of them before one is used.
    /// - Returns: For each table, the currencies whose rate is not believed.
    package func take(_ tables: [ReferenceRateTable]) -> [[Currency]] {
        defer { startRounds(derivedFrom: nil) }
        return tables.map { rates.take($0) }
    }

    /// The rates of all sources, to be kept over a restart.
    package var rateTables: [ReferenceRateTable] { rates.tables }

    /// Keeps the rates of these sources only, which are in their order.
    package func keepRates(of sources: [String]) { rates.keep(only: sources) }

    /// Starts a round of each currency that has no current price and may have a derived one now. After new rates, also of those whose price is
    /// derived: a rate may have become doubtful.
    /// - Parameter nearest: The currency that has a price again; `nil` for all, because rates were received.
    func startRounds(derivedFrom nearest: Currency?) {
        for tracked in tracked
        where tracked.plan.derivation != .never && !isPaused {
            let isRevised = nearest == nil && tracked.tracker.state.derivation != nil
            guard isRevised || tracked.tracker.state.freshness != .fresh else { continue }
            // With a market of its own, its first tick is about to come.
            if tracked.plan.derivation != .always, tracked.tracker.state.ticks.awaitsTick { continue }
            let currency = tracked.currency
            if let nearest, base(of: tracked)?.currency != nearest { continue }
            Task(executorPreference: executor) { await self.confirm(currency) }
        }
    }

    /// The currencies without markets of their own, each with the one that it is derived from.
    package var derivations: [Currency: Currency] {
        tracked.reduce(into: [:]) { derivations, tracked in
            guard tracked.plan.derivation == .always, let base = base(of: tracked) else { return }
            derivations[tracked.currency] = base.currency
        }
    }

    /// The currency that another one is derived from: the nearest, or if that is not kept, the other one that has reference rates.
    func base(of tracked: TrackedCurrency) -> TrackedCurrency? {
        guard tracked.plan.derivation != .never, let nearest = tracked.currency.nearest else { return nil }
        return self.tracked(nearest) ?? self.tracked(nearest == .eur ? .usd : .eur)
    }

    /// The price that is shown instead of a market's, or why there is none; neither if none is derived.
    func derived(_ tracked: TrackedCurrency, isConfirmedOnly: Bool) -> (price: DerivedPrice?, failure: String?) {
        guard let other = base(of: tracked) else { return (nil, nil) }
        let present = now()
        do throws(DerivationError) {
            let rate = try rates.rate(of: tracked.currency, per: other.currency, at: present.wall)
            // The market or the rate is wrong: a rate that only one source has is not believed more than the market.
            if isConfirmedOnly, !rate.isConfirmed { return (nil, nil) }
            var price = try DerivationRule.derive(
                tracked.currency, from: other.tracker.state, rate, tracked.tracker.belief, at: present)
            price.isInstead = tracked.plan.derivation == .fallback
            return (price, nil)
        } catch {
            return (nil, error.description)
        }
    }

    /// What the price in another currency and a reference rate imply.
    func expected(_ tracked: TrackedCurrency, beside other: OtherCurrency?, at wall: Timestamp)
        -> ExpectedPrice?
    {
        // Without a rate, nothing is known to compare the price with.
        guard !rates.tables.isEmpty, let other,
            let rate = try? rates.rate(of: tracked.currency, per: other.currency, at: wall)
        else { return nil }
        return ExpectedPrice(other, rate, in: tracked.currency, at: wall)
    }
}
