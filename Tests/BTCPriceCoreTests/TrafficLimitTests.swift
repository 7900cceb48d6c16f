import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct TrafficLimitTests {
    /// When messages that come at an interval exceed the limit of 100 messages or 1,000 bytes a second, milliseconds.
    private func end(every interval: Int64, bytes: Int) -> Int64? {
        var limit = TrafficLimit(messages: 100, bytes: 1000)
        return stride(from: 0, to: 60_000, by: Int(interval)).first {
            !limit.count(bytes: bytes, at: 7000 + $0)
        }
    }

    @Test func `the sustained rate is allowed for ever, and more than it for a while`() {
        #expect(end(every: 10, bytes: 10) == nil)
        #expect(end(every: 100, bytes: 100) == nil)
        // Twice as many messages, and twice as many bytes.
        #expect(end(every: 5, bytes: 0) == 4995)
        #expect(end(every: 100, bytes: 200) == 4900)
    }

    @Test(arguments: [(500, 0), (0, 5000)])
    func `five seconds' worth may come at once, and again after five seconds`(count: Int, bytes: Int) {
        /// Whether each of some numbers of messages and bytes is within the limit.
        func isWithin(_ traffic: [(count: Int, bytes: Int, time: BootTime)]) -> [Bool] {
            var limit = TrafficLimit(messages: 100, bytes: 1000)
            return traffic.map { limit.count(messages: $0.count, bytes: $0.bytes, at: $0.time) }
        }
        #expect(isWithin([(count, bytes, 100), (1, 11, 109)]) == [true, false])
        // A clock that steps back allows nothing.
        #expect(isWithin([(count, bytes, 100), (count, bytes, 5100), (1, 1, 0)]) == [true, true, false])
    }

    @Test func `its text names both rates`() {
        #expect(
            TrafficLimit(messages: 100, bytes: 262_144).excessText == "more than 100 messages or 256 KiB a second")
    }
}
