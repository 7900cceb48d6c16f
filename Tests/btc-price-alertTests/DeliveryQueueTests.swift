import BTCPriceCore
import TestSupport
import Testing

@testable import btc_price_alert

@Suite struct DeliveryQueueTests {
    private let start = ObservationTime(wall: Timestamp(milliseconds: 1_700_000_000_000), boottime: .boot)

    private func moment(_ boottime: BootTime) -> ObservationTime {
        start.advanced(by: .milliseconds(boottime - start.boottime))
    }

    private func delivery(_ id: String, fired: Timestamp? = nil) -> Delivery {
        Delivery(id: id, alert: "a", fired: fired ?? start.wall)
    }

    @Test func `a command that fails runs again after 5 s, 30 s and 2 min, then no more`() {
        var queue = DeliveryQueue()
        _ = queue.add(delivery("x"), at: start)
        var now = BootTime.boot
        for wait in [5_000, 30_000, 120_000] as [Int64] {
            let (due, twice) = (queue.next(at: now).start, queue.next(at: now).start)
            #expect(due.map(\.id) == ["x"])
            #expect(twice.isEmpty, "it runs")
            let outcome = queue.end("x", isWell: false, at: moment(now))
            #expect(outcome == .retry(after: wait))
            let early = queue.next(at: now + wait - 1).start
            #expect(early.isEmpty)
            now += wait
        }
        let last = queue.next(at: now).start
        #expect(last.map(\.failures) == [3])
        let outcome = queue.end("x", isWell: false, at: moment(now))
        #expect(outcome == .givenUp && queue.isEmpty)
    }

    @Test func `what is too old to be true is dropped, also after a restart`() {
        var queue = DeliveryQueue()
        _ = queue.add(delivery("x"), at: start)
        _ = queue.add(delivery("y", fired: Timestamp(milliseconds: start.wall.milliseconds - 599_000)), at: start)
        let (due, old) = queue.next(at: .boot + 2_000)
        #expect(due.map(\.id) == ["x"])
        #expect(old.map(\.id) == ["y"])
        let late = queue.next(at: .boot + 700_000)
        #expect(late.tooOld.isEmpty, "one that runs is not dropped")
        let outcome = queue.end("x", isWell: true, at: moment(.boot + 700_000))
        #expect(outcome == .done)
    }

    @Test func `a restart does not shorten a wait`() {
        var queue = DeliveryQueue()
        _ = queue.add(delivery("x"), at: start)
        _ = queue.next(at: .boot)
        _ = queue.end("x", isWell: false, at: start)
        var next = DeliveryQueue()
        for delivery in queue.pending { _ = next.add(delivery, at: moment(1_000)) }
        let (early, due) = (next.next(at: 4_999).start, next.next(at: 5_000).start)
        #expect(early.isEmpty && due.map(\.id) == ["x"])
    }

    @Test func `eight commands run at once, and a limited number waits`() {
        var queue = DeliveryQueue()
        let added = (0...DeliveryQueue.Bounds.most).map { queue.add(delivery("\($0)"), at: start) }
        #expect(added.dropLast().allSatisfy(\.self) && added.last == false)
        let first = queue.next(at: .boot).start
        #expect(first.map(\.id) == (0..<8).map { "\($0)" })
        let outcome = queue.end("3", isWell: true, at: start)
        #expect(outcome == .done)
        let next = queue.next(at: .boot).start
        #expect(next.map(\.id) == ["8"])
    }
}
