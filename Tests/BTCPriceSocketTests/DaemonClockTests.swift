import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct DaemonClockTests {
    /// A price that was observed 40 s before the daemon made the reply, at `boottime` of its clock.
    private func message(madeAt boottime: BootTime?) -> StateMessage {
        let observed: BootTime = (boottime ?? 0) - 40_000
        var state = PriceState(
            tick: 1, freshness: .stale,
            quote: PriceQuote(
                value: 68900, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "a", market: "BTC/USD"),
            observedBoottime: observed, confirmation: nil, failure: nil)
        state.price?.conversion = Conversion(value: 1, rate: 1, sources: [], measuredBoottime: observed)
        return StateMessage(instance: "i", state: state, boottime: boottime)
    }

    private func age(_ message: StateMessage, at boottime: BootTime) -> Duration? {
        message.state.age(at: ObservationTime(wall: Timestamp(milliseconds: 0), boottime: boottime))?.age
    }

    @Test(arguments: [-1_000_000_000, -100_000, 100_000, 1_000_000_000] as [Int64])
    func `a price has its age on another clock, in this reply and in later ones`(ahead: Int64) {
        var clock = DaemonClock()
        clock.sent(at: 5_000_000)
        clock.received(message(madeAt: 5_000_000 + ahead), at: 5_000_200)
        let first = clock.converted(message(madeAt: 5_000_000 + ahead))
        #expect(age(first, at: 5_000_200) == .milliseconds(40_200), "older by at most the duration of the call")
        #expect(first.state.price?.conversion?.measuredBoottime == first.state.observedBoottime)
        // A state of the same watch, which the reader reads a minute late.
        let later = message(madeAt: 5_300_000 + ahead)
        clock.received(later, at: 5_360_000)
        #expect(age(clock.converted(later), at: 5_360_000) == .seconds(100))
    }

    @Test func `on the same clock, nothing is converted, and the age is exact`() {
        for made in [4_999_000, 5_000_000, 5_090_000, 5_091_000] as [BootTime] {
            var clock = DaemonClock()
            clock.sent(at: 5_000_000)
            clock.received(message(madeAt: made), at: 5_090_000)
            #expect(clock.converted(message(madeAt: made)) == message(madeAt: made))
        }
    }

    @Test func `without the daemon's time, a price from the future has no age`() {
        var clock = DaemonClock()
        clock.sent(at: 5_000_000)
        clock.received(message(madeAt: nil), at: 5_000_000)
        var state = clock.converted(message(madeAt: nil))
        state.state.price?.observedBoottime = 9_000_000
        #expect(age(state, at: 5_000_000) == nil)
        #expect(age(state, at: 8_999_000) == .zero)
    }
}
