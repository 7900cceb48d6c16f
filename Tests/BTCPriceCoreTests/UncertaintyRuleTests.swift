import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct UncertaintyRuleTests {
    private func decision(_ rounds: Rounds, at second: Double) throws -> Decision {
        try #require(rounds.tick(at: second))
    }

    @Test func `a single market has no uncertainty, and that of two grows with their distance and age`() throws {
        let rounds = Rounds()
        rounds.prices = [.binance: "68900"]
        #expect(try decision(rounds, at: 1).uncertainty == nil)
        rounds.prices = [.binance: "68900", .coinbase: "68900"]
        rounds.observe(.coinbase, at: 1)
        let close = try #require(try decision(rounds, at: 2).uncertainty)
        #expect(close.markets == 2)
        #expect(close.plusMinus < 1)
        let apart = Rounds()
        apart.prices = [.binance: "68900", .coinbase: "68969"]
        apart.observe(.coinbase, at: 1)
        let wide = try #require(try decision(apart, at: 2).uncertainty)
        #expect(wide.plusMinus > 50 && wide.plusMinus < 150)
        // A market that was seen long ago does not count.
        let markets: [Double: String] = [59: "68900.01", 63: "68900.02"]
        for (second, value) in markets.sorted(by: { $0.key < $1.key }) {
            apart.prices = [.binance: value]
            #expect((try decision(apart, at: second).uncertainty == nil) == (second > 61))
        }
    }

    @Test func `a rejected or suspicious market does not count`() throws {
        let rounds = Rounds()
        rounds.prices = [.binance: "65500", .coinbase: "68890", .bitstamp: "68900"]
        let decision = try decision(rounds, at: 1)
        #expect(decision.quote?.source == "coinbase")
        let uncertainty = try #require(decision.uncertainty)
        #expect(uncertainty.markets == 2 && uncertainty.plusMinus < 20)
    }

    @Test func `a median is no market and states no USDT, and a market far from it does not count`() throws {
        let rounds = Rounds(rules: SelectionRules(mode: .median, quorum: 2))
        rounds.prices = [.binance: "68900", .coinbase: "68900", .bitstamp: "68902", .kraken: "68904"]
        for second in 1...3 { _ = rounds.tick(at: Double(second)) }
        #expect(try decision(rounds, at: 4).uncertainty?.markets == 4)
        rounds.prices[.kraken] = "75000"
        let uncertainty = try #require(try decision(rounds, at: 5).uncertainty)
        #expect(uncertainty.markets == 3 && uncertainty.plusMinus < 10)
        // The shown price changes from the median to that of a market and back.
        rounds.prices = [.binance: "68900"]
        _ = rounds.tick(at: 6)
        #expect(rounds.tracker.pegRate?.sources.contains("median") != true)
    }

    @Test func `the next market is shown if the first one that answered has lost its price`() {
        let rounds = Rounds()
        rounds.prices = [.binance: "68900", .coinbase: "68901"]
        _ = rounds.tick(at: 1)
        rounds.observe(.coinbase, at: 1)
        var round = rounds.tracker.round(at: Rounds.time(1.1).boottime, markets: Rounds.four)
        round.answered = [.binance, .coinbase]
        rounds.tracker.lost(.binance)
        guard case .decided(let decision, _) = rounds.tracker.select(round) else {
            Issue.record("there is a price")
            return
        }
        #expect(decision.quote?.source == "coinbase")
    }
}
