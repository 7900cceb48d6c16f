import Testing

@testable import BTCPriceCore

@Suite struct BackoffTests {
    @Test func `each wait is twice the last one, up to the longest, and a success resets it`() {
        var backoff = Backoff(from: .seconds(1), to: .seconds(80))
        #expect((0..<9).map { _ in backoff.next() } == [1, 2, 4, 8, 16, 32, 64, 80, 80].map { .seconds($0) })
        backoff.reset()
        #expect(backoff.next() == .seconds(1))
    }

    @Test func `a number of failures that overflows a shift gives the longest wait`() {
        #expect(Backoff.wait(from: .seconds(1), to: .seconds(60), after: .max) == .seconds(60))
        #expect(Backoff.wait(from: .seconds(1), to: .seconds(60), after: -1) == .seconds(1))
    }
}
