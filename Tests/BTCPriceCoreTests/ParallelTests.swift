import Testing

@testable import BTCPriceCore

/// A currency with one market, in addition to the dollar.
@Suite struct ParallelTests {
    private static let francs = Market("kraken", "BTC/CHF")

    /// Runs ticks ten seconds apart with prices in dollars and in francs. Returns the resulting lines.
    private func run(_ prices: [(dollars: String, francs: String)]) -> [String] {
        let rounds = Rounds([Self.francs], currency: .chf, belief: Belief())
        return prices.enumerated().compactMap { index, prices in
            let seconds = Double(index * 10)
            rounds.prices = [Self.francs: prices.francs]
            rounds.other = OtherCurrency(
                currency: .usd, log: price(prices.dollars).logarithm, at: Rounds.time(seconds).boottime)
            return rounds.tick(at: seconds)?.text
        }
    }

    @Test func `a crash that the dollar shows too is accepted at once, as for a single market`() {
        let crash = run([("70000", "56000"), ("70010", "56010"), ("66500", "53200"), ("66400", "53100")])
        #expect(crash[2] == "53200 kraken single")
        #expect(crash[3] == "53100 kraken single")
        let alone = run([("70000", "56000"), ("70010", "56010"), ("70020", "53200")])
        #expect(alone[2] == "withheld kraken")
    }

    @Test func `a bad print on the only market is not shown`() {
        let shown = run([
            ("70000", "56000"), ("70010", "56010"), ("70000", "44800"), ("70020", "56020"), ("70010", "56000"),
        ])
        #expect(shown[2] == "withheld kraken")
        #expect(!shown.contains { $0.hasPrefix("44800") })
        #expect(shown[3] == "56020 kraken single" || shown[3] == "56020 kraken unconfirmed")
    }

    @Test func `a forex jump of 20 percent within minutes is shown as unconfirmed`() {
        // 2015-01-15: the Swiss franc left its limit against the euro.
        var path: [(dollars: String, francs: String)] = [("70000", "70000"), ("70000", "70010")]
        for step in 1...12 { path.append(("70000", "\(70_000 - step * 1166)")) }
        path += Array(repeating: ("70000", "56000"), count: 6)
        let shown = run(path)
        #expect(shown.last?.hasPrefix("56000 kraken") == true)
        // Never longer than the number of ticks that a jump waits.
        let longest = shown.split { !$0.hasPrefix("withheld") }.map(\.count).max() ?? 0
        #expect(longest < Vote.Bounds.ticks, "\(shown)")
    }
}
