import Testing

@testable import BTCPriceCore

@Suite struct WantedChangesTests {
    @Test func `a burst from a market is handled once, and unwatched streams are ignored`() {
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
