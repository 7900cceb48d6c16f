import BTCPriceCore
import Testing

@testable import btc_price_http

@Suite struct PageTests {
    private let page = String(decoding: PackageResources.index_html, as: UTF8.self)

    @Test func `the page has the symbols and the decimal places of the currencies`() throws {
        let line = try #require(page.firstMatch(of: /const symbols = \{ (.*) \};/)).output.1
        let symbols = Dictionary(
            uniqueKeysWithValues: line.matches(of: /([A-Z]{3}): "([^"]*)"/).map {
                (String($0.output.1), String($0.output.2))
            })
        // The others are shown with their code.
        let known = Currency.known.filter { $0.symbol != "\($0) " }
        #expect(symbols == Dictionary(uniqueKeysWithValues: known.map { ($0.rawValue, $0.symbol) }))
        let whole = try #require(page.firstMatch(of: /places = \[([^\]]*)\]\.includes\(code\) \? 0 : 2/)).output.1
        #expect(
            Set(whole.matches(of: /[A-Z]{3}/).map { String($0.output) })
                == Set(Currency.known.filter { $0.places == 0 }.map(\.rawValue)))
        #expect(Currency.known.allSatisfy { [0, 2].contains($0.places) })
    }
}
