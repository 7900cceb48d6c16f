import TestSupport
import Testing

@testable import BTCPriceCore

/// A currency whose first price no second market confirms.
@Suite struct ExpectedPriceTests {
    private static let korunas = Market("coinmate", "BTC/CZK")
    private static let others = [korunas, Market("other", "BTC/CZK"), Market("third", "BTC/CZK")]
    private static let czk = Currency(rawValue: "CZK") ?? .usd

    private func rounds(_ prices: [String], rate: String = "21.3") -> Rounds {
        let markets = Array(Self.others.prefix(prices.count))
        let rounds = Rounds(markets, currency: Self.czk, belief: Belief())
        rounds.prices = Dictionary(uniqueKeysWithValues: zip(markets, prices))
        let dollars = OtherCurrency(currency: .usd, log: price("110000").logarithm, at: Rounds.time(0).boottime)
        rounds.expected = ExpectedPrice(
            dollars,
            ReferenceRate(value: price(rate), source: "ecb", date: Rounds.time(0).wall, isConfirmed: true),
            in: Self.czk, at: Rounds.time(0).wall)
        return rounds
    }

    @Test(arguments: ["110000", "4700000", "1150000", "23430"])
    func `a first price of another currency or in another unit is refused`(value: String) {
        let rounds = rounds([value])
        #expect(rounds.tick(at: 0)?.text == "rejected coinmate")
        #expect(rounds.lastActions.failure?.description.contains("is far from CZK 2,343,000.00") == true)
    }

    @Test(arguments: ["2343000", "1250000", "4600000"])
    func `a first price within a factor of two is shown`(value: String) {
        #expect(rounds([value]).tick(at: 0)?.text == "\(value) coinmate unconfirmed")
    }

    @Test func `two markets that agree are right, and the rate is wrong`() {
        #expect(rounds(["2343000", "2343100"], rate: "213").tick(at: 0)?.text == "2343000 coinmate confirmed")
    }

    @Test func `one of three that is off by ten is not shown, and its neighbours are`() {
        let shown = rounds(["234300", "2343000", "2343100"])
        #expect(shown.tick(at: 0)?.quote?.value == 2_343_000)
        let last = rounds(["2343000", "2343100", "23430000"])
        #expect(last.tick(at: 0)?.text == "2343000 coinmate confirmed")
    }

    @Test func `a lone market that slides away from what is implied is shown once it stands, with what contradicts it`()
    {
        let rounds = rounds(["2343000"])
        rounds.other = OtherCurrency(currency: .usd, log: price("110000").logarithm, at: Rounds.time(0).boottime)
        for second in 0..<70 { _ = rounds.tick(at: Double(second)) }
        var value = 2_343_000.0
        for second in 70..<80 {
            value *= 1.02
            rounds.prices[Self.korunas] = "\(Int(value))"
            #expect(rounds.tick(at: Double(second))?.quote == nil)
        }
        #expect(rounds.tick(at: 80)?.quote == nil)
        #expect(rounds.tick(at: 81)?.text == "\(Int(value)) coinmate unconfirmed")
        #expect(rounds.lastActions.publish?.standing.warning?.contains("BTC/USD and the rate of ecb") == true)
    }

    @Test func `of two that contradict each other the plausible one is shown`() {
        #expect(rounds(["2343000", "110000"]).tick(at: 0)?.text == "2343000 coinmate unconfirmed")
    }
}
