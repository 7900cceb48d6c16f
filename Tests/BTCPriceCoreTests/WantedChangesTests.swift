import Testing

@testable import BTCPriceCore

@Suite struct WantedChangesTests {
    @Test func `a burst of a market is one look, and unwatched streams are none`() {
        let changes = WantedChanges()
        #expect(!changes.begin(.binance))
        changes.set(true)
        #expect(changes.begin(.binance))
        #expect(!changes.begin(.binance))
        #expect(changes.begin(.kraken))
        changes.end(.binance)
        #expect(changes.begin(.binance))
        changes.set(false)
        changes.end(.kraken)
        #expect(!changes.begin(.kraken))
    }
}
