import BTCPriceCore
import Testing

@testable import BTCPriceNetworking

@Suite struct QuotesTests {
    @Test(arguments: [("100", "100"), ("99.5", "99.9"), ("100.9", "100.1"), ("99.9", "99.9")])
    func `a last price outside the quotes is moved to the nearer one`(last: String, expected: String) throws {
        let quotes = try Quotes(bid: try #require(Price("99.9")), ask: try #require(Price("100.1")))
        #expect(try quotes.clamped(try #require(Price(last))).description == expected)
    }

    @Test(arguments: ["98.8", "101.2"]) func `a last price far outside the quotes is refused`(last: String) throws {
        let quotes = try Quotes(bid: try #require(Price("99.9")), ask: try #require(Price("100.1")))
        #expect(throws: PriceLoadingError.self) { try quotes.clamped(try #require(Price(last))) }
    }

    @Test func `a wide spread is refused, and one of exactly 2 % is not`() throws {
        #expect(try Quotes(bid: 100, ask: 102).middle() == 101)
        let wide = try Quotes(bid: 100, ask: try #require(Price("102.01")))
        #expect(throws: PriceLoadingError.self) { try wide.middle() }
        #expect(throws: PriceLoadingError.self) { try wide.clamped(101) }
        #expect(throws: PriceLoadingError.self) { try Quotes(bid: 101, ask: 100) }
    }
}
