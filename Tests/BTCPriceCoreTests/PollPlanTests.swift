import TestSupport
import Testing

@testable import BTCPriceCore

/// The rules for the requests of a round, tested on the value alone: no clock, no tasks.
@Suite struct PollPlanTests {
    /// Runs a plan and records its requests.
    struct Run {
        var plan: PollPlan
        var asked: [Int] = []
        var wake: Int64?
        var result: PollPlan.Result?

        init(sources: Int, deadline: Int = 1000, wantsAll: Bool = false) {
            plan = PollPlan(
                patience: Array(
                    repeating: .init(timeout: .milliseconds(800), hedge: .milliseconds(400)), count: sources),
                deadline: at(deadline), wantsAll: wantsAll)
            take(plan.advance(now: at(0)))
        }

        mutating func answered(_ index: Int, at time: Int) {
            take(plan.answered(index, now: BTCPriceCoreTests.at(time)))
        }
        mutating func failed(_ index: Int, _ error: PriceLoadingError = .unavailable("HTTP 503"), at time: Int) {
            take(plan.failed(index, error, now: BTCPriceCoreTests.at(time)))
        }
        mutating func timer(at time: Int) {
            take(plan.advance(now: BTCPriceCoreTests.at(time)))
        }
        mutating func take(_ actions: [PollPlan.Action]) {
            for action in actions {
                switch action {
                case .request(let index): asked.append(index)
                case .wake(let instant): wake = instant.wholeMilliseconds
                case .finish(let result):
                    #expect(self.result == nil, "it finishes once")
                    self.result = result
                }
            }
        }

        var winner: Int? { winners.count == 1 ? winners[0] : nil }
        var winners: [Int] {
            if case .answered(let indices, _) = result { indices } else { [] }
        }
        var errors: [PriceLoadingError]? {
            switch result {
            case .answered(_, let failures): failures.map(\.error)
            case .failed(let failures): failures.map(\.error)
            case .cancelled, nil: nil
            }
        }
    }

    @Test func `only the primary is requested, and its response ends the plan`() {
        var run = Run(sources: 3)
        #expect(run.asked == [0])
        #expect(run.wake == 400)
        run.answered(0, at: 120)
        #expect(run.winner == 0)
        #expect(run.asked == [0])
        #expect(run.errors == [])
    }

    @Test func `after a failure the next source is requested at once`() {
        var run = Run(sources: 3)
        run.failed(0, at: 30)
        #expect(run.asked == [0, 1])
        run.failed(1, .refused("HTTP 403"), at: 60)
        #expect(run.asked == [0, 1, 2])
        run.answered(2, at: 90)
        #expect(run.winner == 2)
        #expect(run.errors == [.unavailable("HTTP 503"), .refused("HTTP 403")])
    }

    @Test func `without a response the next source is requested too, and the primary still wins within its time`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        #expect(run.asked == [0, 1])
        run.answered(1, at: 450)
        #expect(run.result == nil, "the fallback's answer is held while the primary may still answer")
        #expect(run.wake == 800)
        run.answered(0, at: 790)
        #expect(run.winner == 0)
    }

    @Test func `the held response is used when the primary's time is over, and no other source is requested`() {
        var run = Run(sources: 3)
        run.timer(at: 400)
        run.answered(1, at: 450)
        run.timer(at: 799)
        #expect(run.asked == [0, 1])
        run.timer(at: 800)
        #expect(run.winner == 1)
        #expect(run.errors == [.timedOut(after: .milliseconds(800))])
    }

    @Test func `the held response is used when the primary fails`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.answered(1, at: 450)
        run.failed(0, at: 500)
        #expect(run.winner == 1)
    }

    @Test func `a response after its source's time ranks after all others`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.timer(at: 800)
        run.answered(0, at: 801)
        #expect(run.result == nil)
        run.answered(1, at: 900)
        #expect(run.winner == 1)
    }

    @Test func `a late price is better than none`() {
        var alone = Run(sources: 1)
        alone.timer(at: 800)
        #expect(alone.result == nil)
        #expect(alone.wake == 1000)
        alone.answered(0, at: 990)
        #expect(alone.winner == 0)
        #expect(alone.errors == [])

        var first = Run(sources: 2)
        first.timer(at: 400)
        first.timer(at: 800)
        first.answered(0, at: 801)
        first.failed(1, at: 900)
        #expect(first.winner == 0)
        #expect(first.errors == [.unavailable("HTTP 503")])

        var silent = Run(sources: 2)
        silent.timer(at: 400)
        silent.answered(0, at: 850)
        silent.timer(at: 1000)
        #expect(silent.winner == 0)
    }

    @Test func `a source that may not be requested any more costs no time`() {
        var run = Run(sources: 3)
        let actions = run.plan.skipped(0, now: at(0))
        run.take(actions)
        #expect(run.asked == [0, 1])
        run.answered(1, at: 90)
        #expect(run.winner == 1)
        #expect(run.errors == [])
    }

    @Test func `the end of the budget fails sources without a response`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.timer(at: 800)
        #expect(run.result == nil)
        #expect(run.wake == 1000)
        run.timer(at: 1000)
        #expect(run.errors == [.timedOut(after: .milliseconds(800)), .timedOut(after: nil)])
        #expect(run.winner == nil)
    }

    @Test func `after two sources without a response the third is requested`() {
        var run = Run(sources: 3)
        run.timer(at: 400)
        run.timer(at: 800)
        #expect(run.asked == [0, 1, 2])
        run.answered(2, at: 850)
        #expect(run.result == nil, "the second one may still answer")
        run.timer(at: 1000)
        #expect(run.winner == 2)
    }

    @Test func `a cancelled source ends the plan and starts no fallback`() {
        var run = Run(sources: 2)
        run.failed(0, .cancelled, at: 10)
        guard case .cancelled = run.result else {
            Issue.record("cancelled, not \(String(describing: run.result))")
            return
        }
        #expect(run.asked == [0])
    }

    @Test func `the failure of a single source is the failure of the plan`() {
        var run = Run(sources: 1)
        run.failed(0, at: 5)
        #expect(run.errors == [.unavailable("HTTP 503")])
    }

    @Test func `a timer that fires without need has no effect`() {
        var run = Run(sources: 2)
        run.timer(at: 1)
        run.timer(at: 399)
        #expect(run.asked == [0])
        #expect(run.result == nil)
    }

    @Test func `if all are wanted, all are requested at once, and every response counts`() {
        var run = Run(sources: 3, wantsAll: true)
        #expect(run.asked == [0, 1, 2])
        run.answered(2, at: 20)
        run.failed(1, at: 30)
        #expect(run.result == nil, "the first one may still respond")
        run.answered(0, at: 700)
        #expect(run.winners == [0, 2])
        #expect(run.errors == [.unavailable("HTTP 503")])
        var silent = Run(sources: 3, wantsAll: true)
        silent.answered(1, at: 20)
        #expect(silent.wake == 800)
        silent.timer(at: 800)
        #expect(silent.winners == [1])
        #expect(silent.errors == Array(repeating: .timedOut(after: .milliseconds(800)), count: 2))
    }

    /// For any order of events, the plan finishes exactly once, by the deadline, requests no source twice and keeps the order.
    @Test(arguments: 0..<400) func `random histories keep the rules`(seed: Int) {
        var random = SeededGenerator(seed: seed)
        let sources = Int.random(in: 1...5, using: &random)
        var run = Run(sources: sources)
        var open = Set(run.asked)
        var time = 0
        while run.result == nil {
            time = min(1000, time + Int.random(in: 0...250, using: &random))
            let index = open.randomElement(using: &random)
            switch (Int.random(in: 0...3, using: &random), index) {
            case (0, let index?):
                open.remove(index)
                run.answered(index, at: time)
            case (1, let index?):
                open.remove(index)
                run.failed(index, at: time)
            default: run.timer(at: time)
            }
            open.formUnion(run.asked.suffix(1))
            if time == 1000 { run.timer(at: 1000) }
        }
        #expect(run.asked == Array(0..<run.asked.count), "seed \(seed)")
        if case .answered(let indices, let failures) = run.result, let index = indices.first {
            #expect(indices.count == 1, "seed \(seed)")
            let others = failures.map(\.index)
            #expect(others.starts(with: 0..<index), "everybody before the winner has failed, seed \(seed)")
            #expect(!others.contains(index) && others == others.sorted(), "seed \(seed)")
        }
    }
}

private func at(_ milliseconds: Int) -> Duration {
    .milliseconds(milliseconds)
}
