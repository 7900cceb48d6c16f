import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceFeature

@Suite struct ConversionPriceTests {
    private func price(_ low: Price, _ open: Price, _ high: Price, isCoarse: Bool) -> ConversionPrice {
        let candle = Candle(start: 0, open: open, high: high, low: low, close: open)
        return ConversionPrice(candle, open, isCoarse: isCoarse, in: .usd)
    }

    @Test func `an exact price makes exact amounts`() {
        let exact = price(60000, 68901, 70000, isCoarse: false)
        #expect(exact.text(Amount(1, .btc)) == "1 BTC = 100,000,000 sat = $68,901.00")
        #expect(!exact.isApproximate && exact.range(of: Amount(1, .btc), in: .money(.usd)) == nil)
    }

    @Test func `amounts of a range have the digits that are known, and the range`() throws {
        let day = price(66590, 67932, 68512, isCoarse: true)
        let twentieth = Amount(try #require(Price("0.05")), .btc)
        #expect(
            day.text(twentieth) == "0.05 BTC = 5,000,000 sat = about $3,397 ($3,329.50 to $3,425.60)")
        let dollars = Amount(250, .money(.usd))
        #expect(
            day.text(dollars)
                == "$250.00 = about 0.00368 BTC (0.003649 BTC to 0.00375432 BTC) = about 368,000 sat (364,900 sat to 375,432 sat)"
        )
        // The dearer a bitcoin, the less of it.
        #expect(day.range(of: dollars, in: .sat) == 364_900...375_432)
        let flat = price(68901, 68901, 68901, isCoarse: true)
        #expect(flat.text(Amount(1, .btc)) == "1 BTC = 100,000,000 sat = about $68,901.00 ($68,901.00 to $68,901.00)")
    }

    @Test func `money in another currency is as uncertain as both prices`() {
        let (dollars, twice) = (price(60000, 70000, 80000, isCoarse: true), price(30000, 35000, 36000, isCoarse: true))
        let (exact, amount) = (price(1, 35000, 80000, isCoarse: false), Amount(100, .money(.usd)))
        #expect(dollars.text(amount, and: twice).hasSuffix(" = about $50 ($37.50 to $60.00)"))
        #expect(dollars.money(100, by: twice).range == Price("37.5")!...60)
        #expect(dollars.text(amount, and: exact).hasSuffix(" = about $50.00 ($43.75 to $58.33)"))
        #expect(exact.money(35, by: exact).range == nil)
    }

    @Test func `the state's doubt, age and uncertainty are those of the amounts`() throws {
        let quote = PriceQuote(
            value: 70000, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance", market: "BTC/USD")
        var state = PriceState(
            tick: 1, freshness: .fresh, quote: quote, observedBoottime: nil, confirmation: .confirmed, failure: nil,
            uncertainty: Uncertainty(plusMinus: 700, markets: 2))
        let one = Amount(1, .btc)
        #expect(ConversionPrice(state)?.text(one) == "1 BTC = 100,000,000 sat = $70,000.00")
        state.price?.confirmation = .unconfirmed
        #expect(
            ConversionPrice(state)?.text(one)
                == "1 BTC = 100,000,000 sat = about $70,000 ($69,300.00 to $70,700.00)")
        state.becomeStale(because: "no response")
        #expect(ConversionPrice(state)?.text(one) == "1 BTC = 100,000,000 sat = about $70,000.00")
        state.price?.derivation = Derivation(
            value: 1, currency: "EUR", rate: 1, rateSource: "ecb", rateDate: "2026-11-20")
        #expect(ConversionPrice(state)?.text(one) == "1 BTC = 100,000,000 sat ≈ $70,000.00")
        #expect(ConversionPrice(.empty()) == nil)
    }
}
