import Testing

@testable import BTCPriceCore

private let outage = PriceLoadingError.unavailable("HTTP 503")

private func moment(_ seconds: Double) -> ObservationTime {
    ObservationTime(
        wall: Timestamp(milliseconds: 1_724_596_200_000 + Int64(seconds * 1000)),
        boottime: 5_000_000 + Int64(seconds * 1000))
}

@Suite struct HealthTests {
    private func failed(
        _ health: inout SourceHealth, _ error: PriceLoadingError, at seconds: Double, jitter: Double = 1
    ) -> SourceRest? {
        health.ended(.failure(error), latency: .zero, at: moment(seconds), jitter: jitter)
    }

    private func length(_ rest: SourceRest?) -> Duration? {
        rest.map { .milliseconds($0.until.boottime - $0.since.boottime) }
    }

    @Test func `a source that refuses us may be probed after a minute, counted from the last request`() {
        var health = SourceHealth(limits: [])
        health.asked(at: moment(0).boottime)
        _ = failed(&health, .refused("HTTP 403"), at: 0)
        #expect(health.isBound(at: moment(60).boottime))
        #expect(!health.mayProbeRefusal(at: moment(59.9).boottime))
        #expect(health.mayProbeRefusal(at: moment(60).boottime))
        health.asked(at: moment(60).boottime)
        #expect(!health.mayProbeRefusal(at: moment(61).boottime))
        var limited = SourceHealth(limits: [])
        _ = failed(&limited, .rateLimited("HTTP 429", retryAfter: .seconds(600)), at: 0)
        #expect(!limited.mayProbeRefusal(at: moment(500).boottime))
    }

    @Test func `a retry forgets what no exchange has asked for`() {
        var refused = SourceHealth(limits: [])
        _ = failed(&refused, .refused("HTTP 403"), at: 0)
        let isForgotten = refused.retry(at: moment(1).boottime)
        #expect(isForgotten == true)
        #expect(refused.breaker(at: moment(1).boottime) == .closed)
        let none = refused.retry(at: moment(1).boottime)
        #expect(none == nil)
        var limited = SourceHealth(limits: [])
        _ = failed(&limited, .rateLimited("HTTP 429", retryAfter: .seconds(600)), at: 0)
        let isKept = limited.retry(at: moment(1).boottime)
        #expect(isKept == false)
        #expect(limited.isBound(at: moment(1).boottime))
    }

    @Test func `three failures in a row open the breaker, and a probe decides when the rest is over`() {
        var health = SourceHealth(limits: [])
        let rest1 = failed(&health, outage, at: 0)
        #expect(rest1 == nil)
        let rest2 = failed(&health, outage, at: 1)
        #expect(rest2 == nil)
        #expect(health.breaker(at: moment(1).boottime) == .closed)
        let rest3 = failed(&health, outage, at: 2)
        #expect(length(rest3) == .seconds(5))
        #expect(health.breaker(at: moment(6.999).boottime) == .open)
        #expect(!health.isBound(at: moment(3).boottime), "it may be asked where nobody else is left")
        #expect(health.breaker(at: moment(7).boottime) == .halfOpen)
        let rest4 = failed(&health, outage, at: 8)
        #expect(length(rest4) == .seconds(10), "a failed probe doubles the rest")
        let rest5 = health.ended(.success, latency: .milliseconds(90), at: moment(20), jitter: 0)
        #expect(rest5 == nil)
        #expect(health.breaker(at: moment(20).boottime) == .closed)
        #expect(health.latencies.percentile(50) == .milliseconds(90))
        #expect(health.lastSuccess == moment(20))
        #expect(health.lastFailure?.at == moment(8))
    }

    @Test func `one that fails every second time rests too`() {
        var health = SourceHealth(limits: [])
        var asked = 0
        while health.rest == nil, asked < 100 {
            if asked % 2 == 0 {
                _ = failed(&health, outage, at: Double(asked))
            } else {
                _ = health.ended(.success, latency: .zero, at: moment(Double(asked)), jitter: 0)
            }
            asked += 1
        }
        #expect(asked == 19, "ten failures of the last twenty")
    }

    @Test func `rests grow to a bound and are spread, and sixty successes forget them`() {
        var health = SourceHealth(limits: [])
        for second in 0..<2 { _ = failed(&health, outage, at: Double(second)) }
        var lengths: [Duration] = []
        var at = 2.0
        for _ in 0..<8 {
            guard let rest = failed(&health, outage, at: at, jitter: 1) else { break }
            lengths.append(.milliseconds(rest.until.boottime - rest.since.boottime))
            at += Double(rest.until.boottime - rest.since.boottime) / 1000
        }
        #expect(lengths == [5, 10, 20, 40, 80, 160, 300, 300].map { Duration.seconds($0) })
        #expect(RestRule.length(outage, strikes: 3, jitter: 0) == .seconds(10), "half of it is drawn")
        for second in 0..<60 { _ = health.ended(.success, latency: .zero, at: moment(at + Double(second)), jitter: 0) }
        for second in 60..<62 { _ = failed(&health, outage, at: at + Double(second)) }
        let rest6 = failed(&health, outage, at: at + 62)
        #expect(length(rest6) == .seconds(5))
    }

    @Test func `a ban is waited out to its end and a little longer, at the first failure`() {
        var health = SourceHealth(limits: [])
        let ban = PriceLoadingError.rateLimited("HTTP 418", retryAfter: .seconds(120))
        let rest7 = failed(&health, ban, at: 0, jitter: 0)
        #expect(length(rest7) == .seconds(121))
        #expect(health.isBound(at: moment(120.9).boottime))
        #expect(!health.isBound(at: moment(121).boottime))
        // Back as told and turned away again: from now on it waits longer of itself, and never less than told.
        let rest8 = failed(&health, ban, at: 121, jitter: 0)
        #expect(length(rest8) == .seconds(121))
        for (strike, seconds) in [(3, 121), (4, 241), (5, 481), (20, 10_801)] {
            #expect(RestRule.length(ban, strikes: strike, jitter: 0) == .seconds(seconds), "strike \(strike)")
        }
        let longest = PriceLoadingError.rateLimited("", retryAfter: .seconds(1 << 40))
        #expect(RestRule.length(longest, strikes: 1, jitter: 0) == .seconds(3 * 86_400 + 1))
        #expect(RestRule.length(.rateLimited("", retryAfter: .zero), strikes: 1, jitter: 0) == .seconds(2))
    }

    @Test
    func `without a word of how long, a limit doubles from a minute to six hours and a refusal from ten to a day`() {
        func lengths(_ error: PriceLoadingError) -> [Int64] {
            (1...12).map { RestRule.length(error, strikes: $0, jitter: 0).components.seconds / 60 }
        }
        #expect(lengths(.rateLimited("", retryAfter: nil)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360])
        #expect(lengths(.refused("")) == [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440, 1440, 1440])
        #expect(RestRule.length(.refused(""), strikes: 99, jitter: 1) == .seconds(95_040))
    }

    @Test func `a ban that comes while it rests for failures counts`() {
        var health = SourceHealth(limits: [])
        for second in 0..<3 { _ = failed(&health, outage, at: Double(second)) }
        let rest9 = failed(&health, outage, at: 3)
        #expect(rest9 == nil, "asked as a last resort: nothing changes")
        let rest10 = failed(&health, .rateLimited("", retryAfter: .seconds(30)), at: 4, jitter: 0)
        #expect(length(rest10) == .seconds(31))
        #expect(health.isBound(at: moment(30).boottime))
    }

    @Test(arguments: [PriceLoadingError.cancelled, .timedOut(after: nil)])
    func `what says nothing of the source counts nowhere`(error: PriceLoadingError) {
        var health = SourceHealth(limits: [])
        for second in 0..<30 {
            let rest = failed(&health, error, at: Double(second))
            #expect(rest == nil)
        }
        #expect(health.lastFailure == nil)
        #expect(health.breaker(at: moment(31).boottime) == .closed)
    }

    /// The wall clock is set while a source rests: on the boot clock nothing changes.
    @Test(arguments: [-86_400.0, 86_400])
    func `a step of the wall clock moves no rest`(step: Double) throws {
        var health = SourceHealth(limits: [])
        let rest = failed(&health, .rateLimited("", retryAfter: .seconds(300)), at: 0, jitter: 0)
        let stepped = ObservationTime(
            wall: Timestamp(milliseconds: moment(300 + step).wall.milliseconds), boottime: moment(300).boottime)
        #expect(health.isBound(at: stepped.boottime))
        #expect(length(rest) == .seconds(301))
        let kept = KeptRest(address: "", rest: try #require(rest), isOfThisBoot: true)
        #expect(kept.remaining(at: stepped) == .seconds(1))
        // After a reboot only the wall clock knows: the rest may be over early, and is never longer than it was.
        #expect(kept.ofAnotherBoot.remaining(at: stepped) <= .seconds(301))
    }

    @Test func `a rest goes on after a restart, and a refusal for its shortest time only`() throws {
        let ban = SourceRest(
            reason: .rateLimited("HTTP 418", retryAfter: nil), since: moment(0), until: moment(3600), strikes: 2)
        var health = SourceHealth(limits: [])
        health.resume(KeptRest(address: "", rest: ban, isOfThisBoot: true), at: moment(600))
        #expect(health.rest?.until == moment(3600))
        #expect(health.isBound(at: moment(3599).boottime))
        let rest12 = failed(&health, ban.reason, at: 3600, jitter: 0)
        #expect(RestRule.length(ban.reason, strikes: 3, jitter: 0) == length(rest12))

        var refused = SourceHealth(limits: [])
        let refusal = SourceRest(reason: .refused("HTTP 451"), since: moment(0), until: moment(86_400), strikes: 9)
        refused.resume(KeptRest(address: "", rest: refusal, isOfThisBoot: true), at: moment(600))
        #expect(refused.rest?.until == moment(1200))

        var over = SourceHealth(limits: [])
        over.resume(KeptRest(address: "", rest: ban, isOfThisBoot: true), at: moment(3601))
        #expect(over.rest == nil)
    }
}

@Suite struct BoardTests {
    private static let minute = [RequestLimit(3000, per: .seconds(60))]

    private func board(_ sources: [(name: String, limits: [RequestLimit])], interval: Duration = .seconds(1))
        -> SourceBoard
    {
        SourceBoard(
            sources.map { (PriceSource(name: $0.name, market: "BTC/USD", limits: $0.limits), "https://\($0.name)") },
            interval: interval)
    }

    private func names(_ plan: SourceBoard.Plan, _ board: SourceBoard) -> [String] {
        plan.order.map { board.entries[$0].source.name }
    }

    private func end(
        _ board: inout SourceBoard, _ index: Int, _ error: PriceLoadingError, times: Int = 1, at seconds: Double = 0
    ) {
        for _ in 0..<times {
            _ = board.ended(index, .failure(error), latency: .zero, at: moment(seconds), jitter: 1)
        }
    }

    @Test func `who rests is passed over, and said to be`() {
        var board = board([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        end(&board, 0, outage, times: 3)
        end(&board, 1, .rateLimited("HTTP 429", retryAfter: .seconds(59)))
        let plan = board.plan(.tick, at: moment(1).boottime)
        #expect(names(plan, board) == ["c", "a"], "who only failed is the last resort of a tick")
        #expect(plan.passedOver.map(\.source) == ["b"])
        #expect(names(board.plan(.client, at: moment(1).boottime), board) == ["c"])
        #expect(
            board.plan(.client, at: moment(1).boottime).passedOver.map(\.description) == [
                "a: rests until 2024-08-25 14:30:05 UTC, not available: HTTP 503",
                "b: rests until 2024-08-25 14:31:02 UTC, rate limited for 59 s: HTTP 429",
            ])
    }

    @Test func `where all rest, those that only failed are asked, and who was told to stay away is not`() {
        var board = board([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        end(&board, 0, .refused("HTTP 451"))
        end(&board, 1, .rateLimited("HTTP 418", retryAfter: .seconds(60)))
        end(&board, 2, outage, times: 3)
        #expect(names(board.plan(.tick, at: moment(1).boottime), board) == ["c"])
        end(&board, 2, .rateLimited("", retryAfter: .seconds(60)), at: 1)
        #expect(board.plan(.tick, at: moment(2).boottime).order.isEmpty)
        #expect(board.plan(.tick, at: moment(2).boottime).passedOver.count == 3)
    }

    @Test func `a tick leaves probing to the observer while somebody is well`() {
        var board = board([("a", Self.minute), ("b", Self.minute)])
        end(&board, 0, outage, times: 3)
        #expect(names(board.plan(.tick, at: moment(60).boottime), board) == ["b", "a"])
        #expect(names(board.plan(.observer, at: moment(60).boottime), board) == ["a"])
        #expect(names(board.plan(.observer, at: moment(4).boottime), board) == ["b"], "not before its rest is over")
    }

    @Test func `the observer goes round those that the ticks do not ask`() {
        var board = board([("a", Self.minute), ("b", Self.minute), ("c", Self.minute)])
        var seen: [String] = []
        for second in stride(from: 0.0, to: 90, by: 15) {
            for tick in 0..<15 { _ = board.take(0, .tick, at: moment(second + Double(tick)).boottime) }
            let plan = board.plan(.observer, at: moment(second + 14.5).boottime)
            for index in plan.order { _ = board.take(index, .observer, at: moment(second + 14.5).boottime) }
            seen += names(plan, board)
        }
        #expect(seen == ["b", "c", "b", "c", "b", "c"])
    }

    @Test func `the observer leaves alone the one source that the ticks ask`() {
        var board = board([("a", Self.minute)])
        _ = board.take(0, .tick, at: moment(0).boottime)
        #expect(board.plan(.observer, at: moment(9).boottime).order.isEmpty)
    }

    @Test func `who can't be asked at every tick comes after those that can`() {
        let slow = [RequestLimit(1, per: .seconds(10))]
        let impatient = board([("a", Self.minute), ("slow", slow), ("b", [])])
        #expect(names(impatient.plan(.tick, at: 0), impatient) == ["a", "b", "slow"])
        let patient = board([("slow", slow), ("b", [])], interval: .seconds(10))
        #expect(names(patient.plan(.tick, at: 0), patient) == ["slow", "b"])
        #expect(board([("slow", slow)]).slow.map(\.source.name) == ["slow"])
    }

    @Test func `a tick passes over whoever's limit is used up, and a client gets nobody else's price for it`() {
        var board = board([("a", [RequestLimit(1, per: .seconds(1))]), ("b", Self.minute)])
        let now = moment(0).boottime
        let (first, second) = (board.take(0, .tick, at: now), board.take(0, .tick, at: now + 999))
        #expect(first && !second)
        #expect(names(board.plan(.tick, at: now + 999), board) == ["b"])
        let client = board.plan(.client, at: now + 999)
        #expect(client.order.isEmpty)
        #expect(client.passedOver.map(\.description) == ["a: asked as often as its limit allows"])
        #expect(names(board.plan(.client, at: now + 1000), board) == ["a", "b"])
    }

    @Test func `rests that a restart must not cut short are kept, each for its address`() {
        var first = board([("a", []), ("b", []), ("c", [])])
        end(&first, 0, .rateLimited("HTTP 429", retryAfter: .seconds(60)))
        end(&first, 1, .refused("HTTP 451"))
        end(&first, 2, outage, times: 3)
        let rests = first.rests(at: moment(1))
        #expect(Set(rests.keys) == ["a", "b"])
        var second = board([("a", []), ("b", [])])
        second.resume(rests, at: moment(2))
        #expect(second.plan(.tick, at: moment(2).boottime).order.isEmpty)
        var elsewhere = SourceBoard([(PriceSource(name: "a", market: ""), "https://mirror")], interval: .seconds(1))
        elsewhere.resume(rests, at: moment(2))
        #expect(elsewhere.plan(.tick, at: moment(2).boottime).order == [0])
        // Not asked there, it is remembered all the same: it may be asked there again.
        #expect(Set(elsewhere.rests(at: moment(3)).keys) == ["a", "b"])
        var back = board([("b", []), ("a", [])])
        back.inherit(elsewhere, at: moment(4))
        #expect(back.plan(.tick, at: moment(4).boottime).order.isEmpty)
        #expect(first.rests(at: moment(100_000)).isEmpty && back.rests(at: moment(100_000)).isEmpty)
    }

    @Test func `a rest is kept by the wall clock as it is set when it is kept`() throws {
        var board = board([("a", [])])
        end(&board, 0, .rateLimited("HTTP 429", retryAfter: .seconds(3600)))
        let now = moment(60)
        // The clock was set a year on in the meantime.
        let set = ObservationTime(
            wall: Timestamp(milliseconds: now.wall.milliseconds + 31_536_000_000), boottime: now.boottime)
        let kept = try #require(board.rests(at: set)["a"])
        #expect(kept.rest.until.wall.milliseconds - set.wall.milliseconds == kept.rest.until.boottime - now.boottime)
        #expect(kept.ofAnotherBoot.remaining(at: set) > .seconds(3500))
    }
}
