import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, "1970-01-01 00:00:00 UTC"), (-1, "1969-12-31 23:59:59 UTC"), (951_868_799_999, "2000-02-29 23:59:59 UTC"),
        (951_868_800_000, "2000-03-01 00:00:00 UTC"), (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
        (4_107_542_400_000, "2100-03-01 00:00:00 UTC"), (1_724_596_200_000, "2024-08-25 14:30:00 UTC"),
    ])
    func `a time is written in UTC`(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).utcText == text)
    }
}

@Suite struct BootTimeTests {
    @Test func `the machine's boot clock is CLOCK_BOOTTIME`() {
        func boottime() -> BootTime {
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            return BootTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
        }
        let before = boottime()
        let now = ObservationTime.now().boottime
        #expect((before...boottime()).contains(now))
    }
}
