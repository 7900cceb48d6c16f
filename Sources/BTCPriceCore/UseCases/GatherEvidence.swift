/// A price, and what other sources said in the same fetch.
package struct PriceEvidence: Sendable, Hashable {
    /// The price in question; where all were asked, the first in the sources' order.
    package var price: FetchedPrice
    /// The other sources' prices, in the order in which they are asked.
    var witnesses: [FetchedPrice]
    /// The sources that were asked and gave nothing.
    package var failures: [SourceFailure]

    /// Evidence of which every part is given.
    package init(price: FetchedPrice, witnesses: [FetchedPrice] = [], failures: [SourceFailure] = []) {
        self.price = price
        self.witnesses = witnesses
        self.failures = failures
    }

    var all: [FetchedPrice] { [price] + witnesses }

    /// Whether not every one of so many sources has been asked.
    func isMissing(of sources: Int) -> Bool { 1 + witnesses.count + failures.count < sources }
}

/// Fetches a price and as much of other sources' word as it takes to judge it, within one budget: in the ordinary case none.
struct GatherEvidence<C: Clock>: Sendable where C.Duration == Duration {
    private let fetch: FetchWithFallback<C>
    private let rules: JudgementRules

    init(fetch: FetchWithFallback<C>, rules: JudgementRules) {
        self.fetch = fetch
        self.rules = rules
    }

    /// - Parameters:
    ///   - requester: Who asks.
    ///   - deadline: The end of the budget.
    ///   - known: What is known of the sources' earlier answers.
    ///   - judgement: What is known of their prices. It decides again when it takes the evidence: it may know more by then.
    /// - Throws: ``FetchFailure`` if no source gave a price, or if the task was cancelled.
    func execute(
        _ requester: Requester, deadline: C.Instant, after known: KnownAnswers, judgement: Judgement
    ) async throws(FetchFailure) -> PriceEvidence {
        if rules.mode == .median {
            return try await fetch.executeForAll(requester, deadline: deadline, after: known, quorum: rules.quorum)
        }
        let price = try await fetch.execute(requester, deadline: deadline, after: known)
        var evidence = PriceEvidence(price: price, failures: price.failures)
        if judgement.standstill.wantsWitness(on: price) {
            // One look, at one that was not looked at the last time. The price does not wait long for it: it is the same as before.
            let soon = min(deadline, fetch.clock.now.advanced(by: Self.longestLook))
            _ = try await askAnother(
                than: judgement.standstill.lastAsked, for: &evidence, requester, deadline: soon, after: known)
            return evidence
        }
        while evidence.isMissing(of: fetch.candidates.count), needsAnother(evidence, judgement),
            fetch.clock.now < deadline
        {
            guard try await askAnother(for: &evidence, requester, deadline: deadline, after: known) else { break }
        }
        if judgement.needsTetherRate(for: price, besides: evidence.witnesses),
            evidence.witnesses.allSatisfy({ $0.tetherRate == nil }), fetch.clock.now < deadline
        {
            // A USDT that has left its peg looks like a market that lies, until a USDT/USD market tells which it is.
            _ = try await askAnother(
                than: fetch.sources.withoutTetherRate, for: &evidence, requester, deadline: deadline, after: known)
        }
        return evidence
    }

    /// How long a tick waits for the word of another source on one that may stand still.
    private static var longestLook: Duration { .milliseconds(400) }

    /// Asks a source that was not asked yet.
    /// - Returns: Whether it gave a price.
    private func askAnother(
        than excluded: Set<String> = [], for evidence: inout PriceEvidence, _ requester: Requester, deadline: C.Instant,
        after known: KnownAnswers
    ) async throws(FetchFailure) -> Bool {
        let asked = Set(evidence.all.map(\.quote.source) + evidence.failures.map(\.source))
        do throws(FetchFailure) {
            let witness = try await fetch.execute(
                requester, deadline: deadline, after: known, excluding: asked.union(excluded))
            evidence.witnesses.append(witness)
            evidence.failures += witness.failures
            return true
        } catch {
            if error.isCancelled { throw error }
            evidence.failures += error.failures
            return false
        }
    }

    private func needsAnother(_ evidence: PriceEvidence, _ judgement: Judgement) -> Bool {
        if judgement.needsWitness(for: evidence.price, besides: evidence.witnesses) { return true }
        // What one USDT is worth is told by any dollar price.
        return rules.tether == .convert && evidence.price.quote.isInTether
            && judgement.tether.conversionRate(at: evidence.price.observed.boottime) == nil
            && evidence.witnesses.allSatisfy(\.quote.isInTether)
    }
}
