import BTCPriceCore
import Testing

@testable import BTCPriceFeature

@Suite struct EventTextsTests {
    @Test func `every kind of event has its words`() {
        let words = Episode.Kind.allCases.map { kind in
            PriceTexts.event(
                kind.rawValue, currency: "EUR", source: "kraken", worst: Price(30_151, scale: 4), difference: 7_260_000,
                count: 1)
        }
        #expect(
            words == [
                "no source gave a price in EUR", "the price in EUR was in doubt",
                "the price in EUR jumped, by up to 3.02 %", "USDT was off its peg, by up to 3.02 %",
                "kraken (EUR) was outvoted, by up to 3.02 %", "kraken (EUR) gave no price",
                "kraken (EUR) demanded a pause: a limit or a ban", "kraken (EUR) refused the requests",
                "the updates were paused", "this machine's clock was wrong, by 2 h",
                "the configuration was read again",
            ])
    }

    @Test func `what is not known is left out, and a newer daemon's kind is named`() {
        let text = { (kind: String, source: String?, count: Int64) in
            PriceTexts.event(kind, currency: nil, source: source, worst: nil, difference: nil, count: count)
        }
        #expect(text("outvoted", "kraken", 12) == "kraken was outvoted, 12 times")
        #expect(text("outage", nil, 1) == "no source gave a price")
        #expect(text("clock", nil, 1) == "this machine's clock was wrong")
        #expect(text("eclipse", "kraken", 1) == "eclipse kraken")
    }
}
