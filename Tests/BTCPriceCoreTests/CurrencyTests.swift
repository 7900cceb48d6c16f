import Testing

@testable import BTCPriceCore

@Suite struct CurrencyTests {
    @Test(arguments: ["", "EU", "EURO", "eur", "BTC", "XBT", "SAT", "XAU", "XXX", "ÉUR", "U€"])
    func `a text that is not a code of ISO 4217 is not a currency`(text: String) {
        #expect(Currency(rawValue: text) == nil)
    }

    @Test func `each known currency is a code, and has prices that the history can hold`() {
        #expect(Currency.known.first == .usd)
        for currency in Currency.known {
            #expect(Currency(rawValue: currency.rawValue) == currency)
            #expect(currency.prices.upperBound <= Currency.pricesOfAny.upperBound)
            #expect(currency.englishName != currency.rawValue)
        }
    }

    @Test func `a code without a row is shown with two digits after its code`() throws {
        let currency = try #require(Currency(rawValue: "ISK"))
        #expect((currency.symbol, currency.places, currency.pair) == ("ISK ", 2, "BTC/ISK"))
        #expect((Currency.jpy.symbol, Currency.jpy.places) == ("¥", 0))
        #expect(Currency.jpy.prices == 100...10_000_000_000)
    }
}
