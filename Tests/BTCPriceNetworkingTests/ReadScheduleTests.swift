import NIOCore
import Testing

@testable import BTCPriceNetworking

@Suite struct ReadScheduleTests {
    /// Milliseconds of reads, each of which follows the one before.
    private func reads(_ schedule: ReadSchedule, after start: Double, _ count: Int) -> [Double] {
        var read = NIODeadline.uptimeNanoseconds(UInt64(start * 1e6))
        return (0..<count).map { _ in
            read = schedule.next(after: read)
            return Double(read.uptimeNanoseconds) / 1e6
        }
    }

    @Test func `a read comes 2 ms before each tick, and at the interval in between`() {
        var schedule = ReadSchedule()
        schedule.change(interval: .milliseconds(500), tick: .uptimeNanoseconds(10_000_000_000))
        #expect(reads(schedule, after: 8600, 5) == [8998, 9498, 9998, 10_498, 10_998])
        schedule.change(interval: .milliseconds(100), tick: nil)
        #expect(reads(schedule, after: 9950, 3) == [9998, 10_098, 10_198])
    }

    @Test func `a tick a little later than expected needs no second read`() {
        var schedule = ReadSchedule()
        schedule.change(interval: .milliseconds(500), tick: .uptimeNanoseconds(11_001_000_000))
        #expect(reads(schedule, after: 9998, 2) == [10_499, 10_999])
    }

    @Test func `all exchanges are read at the same moment`() {
        var schedules = [ReadSchedule(), ReadSchedule()]
        schedules[0].change(interval: .milliseconds(500), tick: .uptimeNanoseconds(10_000_001_000))
        schedules[1].change(interval: .milliseconds(500), tick: .uptimeNanoseconds(10_000_090_000))
        #expect(schedules[0] == schedules[1])
    }
}
