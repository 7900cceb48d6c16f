import BTCPriceCore
import Testing

@testable import BTCPriceSocket

@Suite struct InboxTests {
    @Test func `while watchers are served, every tick is queued, and of the later changes only the newest`() throws {
        let inbox = try Inbox(instance: "i")
        inbox.count(1, watcherOf: .changes)
        let published: [(tick: Int64, currency: String, isForAll: Bool)] = [
            (1, "USD", true), (2, "USD", false), (3, "USD", false), (4, "USD", true), (5, "USD", false),
            (6, "EUR", false), (7, "USD", false),
        ]
        for (tick, currency, isForAll) in published {
            inbox.publish(ConnectionTests.sample(tick, currency), isForAll: isForAll)
        }
        #expect(inbox.take().fanOut.map(\.state.ticks.number) == [1, 3, 4, 6, 7])
        inbox.publish(ConnectionTests.sample(8), isForAll: false)
        #expect(inbox.take().fanOut.map(\.state.ticks.number) == [8])
    }

    @Test func `a change of the currencies is delivered, so that watches of others can end`() throws {
        let inbox = try Inbox(instance: "i")
        for code in ["USD", "EUR"] { inbox.publish(ConnectionTests.sample(1, code), isForAll: true) }
        #expect(!inbox.take().currenciesChanged)
        inbox.change(["EUR"])
        #expect(inbox.take().currenciesChanged)
        var replies = ConnectionTests.replies()
        inbox.refresh(&replies)
        #expect(replies.currencies == ["EUR"])
    }
}
