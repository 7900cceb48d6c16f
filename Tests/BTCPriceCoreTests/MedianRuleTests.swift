import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct MedianRuleTests {
    @Test func `the reason names every price, and the consensus its sources`() throws {
        let rounds = Rounds(rules: SelectionRules(mode: .median, quorum: 3))
        rounds.prices = [.coinbase: "68900", .bitstamp: "68910"]
        #expect("\(try #require(rounds.tick(at: 1)?.withheld).error)".contains("3 have to agree, and only "))
        rounds.prices = [.coinbase: "68900", .bitstamp: "68910", .kraken: "68880"]
        let consensus = try #require(rounds.tick(at: 2)?.consensus)
        #expect(consensus == Consensus(sources: ["coinbase", "bitstamp", "kraken"], outliers: [], spread: 30))
    }

    @Test func `two camps of equal size are a dispute, and no mean of both is shown`() throws {
        for quorum in [2, 3] {
            let rounds = Rounds(rules: SelectionRules(mode: .median, quorum: quorum))
            rounds.prices = [.binance: "68900", .coinbase: "70830", .bitstamp: "68910", .kraken: "70840"]
            let decision = try #require(rounds.tick(at: 1))
            #expect(decision.text == "68900 binance unconfirmed")
            #expect(rounds.tracker.state.standing.warning?.contains("contradict") == true)
            // The one that is nearer to the last agreement, whatever their order.
            rounds.prices = [.binance: "70830", .coinbase: "68900", .bitstamp: "70840", .kraken: "68910"]
            let other = try #require(rounds.tick(at: 2)?.text)
            #expect(other.hasPrefix("689") && other.hasSuffix("unconfirmed"), "\(other)")
        }
    }

    @Test func `the sources of a median are in the configured order, also if the price of one is an earlier one`() {
        let rounds = Rounds(rules: SelectionRules(mode: .median, quorum: 3))
        rounds.prices = [.coinbase: "68900", .bitstamp: "68910", .kraken: "68880"]
        _ = rounds.tick(at: 1)
        rounds.isUnreachable = [.bitstamp]
        #expect(rounds.tick(at: 2)?.consensus?.sources == ["coinbase", "bitstamp", "kraken"])
    }
}
