import Testing

@testable import BTCPriceSocket

@Suite struct TurnsTests {
    @Test func `users take turns, and so do the connections of each`() {
        var turns = Turns()
        for connection in 1...4 as ClosedRange<UInt64> { turns.enter(connection, of: 0) }
        turns.enter(11, of: 1)
        turns.enter(12, of: 1)
        #expect(turns.next() == 1)
        // It has more to do, and waits behind the others of its user.
        turns.enter(1, of: 0)
        turns.enter(21, of: 2)
        var order: [UInt64] = []
        while let connection = turns.next() { order.append(connection) }
        #expect(order == [11, 2, 21, 12, 3, 4, 1])
        #expect(turns.isEmpty)
    }

    @Test(arguments: [1, 7, 100]) func `another user's call comes after one turn of each user`(users: Int) {
        var turns = Turns()
        for connection in 0..<1000 { turns.enter(UInt64(connection), of: connection % users) }
        for _ in 0..<50 { _ = turns.next() }
        turns.enter(5000, of: users)
        var before = 0
        while turns.next() != 5000 { before += 1 }
        #expect(before == users)
    }
}
