import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct RemoteClockTests {
    /// The remote machine booted an hour before ours, and its wall clock is a second ahead.
    private static func theirs(_ seconds: Double) -> (boottime: BootTime, wall: Timestamp) {
        (3_600_000 + Int64(seconds * 1000), Timestamp(milliseconds: 1_001_000 + Int64(seconds * 1000)))
    }

    private static func ours(_ seconds: Double) -> ObservationTime {
        ObservationTime(
            wall: Timestamp(milliseconds: 1_000_000 + Int64(seconds * 1000)), boottime: .boot + Int64(seconds * 1000))
    }

    private func age(
        _ clock: inout RemoteClock, observed: Double, arrived: Double, instance: String = "a"
    ) -> (Int64, Bool) {
        let (boottime, wall) = Self.theirs(observed)
        let (time, isEstimate) = clock.date(boottime, wall, of: instance, arrivedAt: Self.ours(arrived))
        return (Self.ours(arrived).boottime - time.boottime, isEstimate)
    }

    @Test func `the first age comes from the wall clocks, later ones from the shortest delay`() {
        var clock = RemoteClock()
        #expect(age(&clock, observed: 10, arrived: 70) == (59_000, true))
        #expect(age(&clock, observed: 70, arrived: 70.1) == (0, false))
        #expect(age(&clock, observed: 71, arrived: 71.05) == (0, false))
        #expect(age(&clock, observed: 72, arrived: 75.05) == (3000, false))
        #expect(age(&clock, observed: 76, arrived: 76.2, instance: "b") == (0, true))
    }

    @Test func `without the remote clock the age is an estimate`() {
        var clock = RemoteClock()
        _ = age(&clock, observed: 1, arrived: 1)
        let (time, isEstimate) = clock.date(nil, Self.theirs(1).wall, of: "a", arrivedAt: Self.ours(4))
        #expect(isEstimate)
        #expect(Self.ours(4).boottime - time.boottime == 2000)
    }

    @Test func `a delay that has become longer is accepted after a while`() {
        var clock = RemoteClock()
        _ = age(&clock, observed: 0, arrived: 0)
        for second in 1...59 { _ = age(&clock, observed: Double(second), arrived: Double(second)) }
        #expect(age(&clock, observed: 60, arrived: 62).0 == 2000)
        for second in 61...179 { _ = age(&clock, observed: Double(second), arrived: Double(second) + 2) }
        #expect(age(&clock, observed: 180, arrived: 182).0 == 0)
    }
}
