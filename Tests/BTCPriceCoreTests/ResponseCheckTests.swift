import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct ResponseCheckTests {
    @Test func `a response older than the last one is stale, compared by time first`() {
        let last = FeedPosition(time: Timestamp(milliseconds: 1000), sequence: 50)
        func judge(_ mark: FeedPosition) -> PriceLoadingError? {
            do {
                try ResponseCheck.check(
                    LoadedPrice(.coinbase, 68901, position: mark), in: .usd, after: last,
                    at: Timestamp(milliseconds: 2000),
                    oldest: .seconds(60))
                return nil
            } catch {
                return error
            }
        }
        #expect(judge(FeedPosition(time: Timestamp(milliseconds: 999), sequence: 51))?.kind == "stale-data")
        #expect(judge(FeedPosition(time: Timestamp(milliseconds: 1000), sequence: 50)) == nil)
        #expect(
            judge(FeedPosition(time: Timestamp(milliseconds: 1001), sequence: 1)) == nil, "the trade numbers began anew"
        )
        #expect(judge(FeedPosition(sequence: 49))?.kind == "stale-data")
        #expect(judge(FeedPosition()) == nil)
    }

    @Test func `a price that is old by its own time is stale`() {
        let now = Timestamp(milliseconds: 10_000_000)
        func age(_ seconds: Int64, oldest: Duration = .seconds(60)) -> PriceLoadingError? {
            let mark = FeedPosition(time: Timestamp(milliseconds: now.milliseconds - seconds * 1000))
            do throws(PriceLoadingError) {
                try ResponseCheck.check(
                    LoadedPrice(.coinbase, 68901, position: mark), in: .usd, after: nil, at: now, oldest: oldest)
                return nil
            } catch {
                return error
            }
        }
        #expect(age(60) == nil)
        #expect(age(61)?.description.hasSuffix("its price is 61 s old by the exchange's own time") == true)
        #expect(age(61)?.kind == "stale-data")
        #expect(age(3600)?.kind == "stale-data")
        #expect(age(300, oldest: .seconds(600)) == nil, "a market that trades rarely")
        #expect(age(-3600) == nil, "ahead is not old")
    }

    @Test func `a position from the future is stored as the present`() {
        let now = Timestamp(milliseconds: 1_000_000)
        func mark(_ time: Int64) -> FeedPosition? {
            ResponseCheck.position(
                of: LoadedPrice(
                    .coinbase, 1, position: FeedPosition(time: Timestamp(milliseconds: time), sequence: 5)),
                acceptedAt: now)
        }
        #expect(mark(999_999)?.time == Timestamp(milliseconds: 999_999))
        #expect(mark(1_055_000) == FeedPosition(time: now, sequence: 5))
        #expect(ResponseCheck.position(of: LoadedPrice(.coinbase, 1), acceptedAt: now) == nil)
    }
}
