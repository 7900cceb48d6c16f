import TestSupport
import Testing

@testable import BTCPriceCore

/// The rules of a hedged fetch, on the pure machine: no clock, no tasks.
@Suite struct HedgedFetchTests {
    typealias Machine = HedgedFetch<String>

    /// Runs a machine and keeps what it asked for.
    struct Run {
        var machine: Machine
        var asked: [Int] = []
        var wake: Int64?
        var result: Machine.Result?

        init(sources: Int, deadline: Int = 1000) {
            machine = Machine(
                patience: Array(
                    repeating: .init(timeout: .milliseconds(800), hedge: .milliseconds(400)), count: sources),
                deadline: at(deadline))
            take(machine.start(now: at(0)))
        }

        mutating func answered(_ index: Int, _ answer: String, at time: Int) {
            take(machine.answered(index, answer, now: BTCPriceCoreTests.at(time)))
        }
        mutating func failed(_ index: Int, _ error: PriceLoadingError = .unavailable("HTTP 503"), at time: Int) {
            take(machine.failed(index, error, now: BTCPriceCoreTests.at(time)))
        }
        mutating func timer(at time: Int) {
            take(machine.timerFired(now: BTCPriceCoreTests.at(time)))
        }
        mutating func take(_ actions: [Machine.Action]) {
            for action in actions {
                switch action {
                case .ask(let index): asked.append(index)
                case .wake(let instant): wake = instant.wholeMilliseconds
                case .finish(let result):
                    #expect(self.result == nil, "it finishes once")
                    self.result = result
                }
            }
        }

        var winner: String? {
            if case .answered(_, let answer, _) = result { answer } else { nil }
        }
        var errors: [PriceLoadingError]? {
            switch result {
            case .answered(_, _, let failures): failures.map(\.error)
            case .failed(let failures): failures.map(\.error)
            case .cancelled, nil: nil
            }
        }
    }

    @Test func `the primary alone is asked, and its answer ends it`() {
        var run = Run(sources: 3)
        #expect(run.asked == [0])
        #expect(run.wake == 400)
        run.answered(0, "a", at: 120)
        #expect(run.winner == "a")
        #expect(run.asked == [0])
        #expect(run.errors == [])
    }

    @Test func `a failure asks the next one at once`() {
        var run = Run(sources: 3)
        run.failed(0, at: 30)
        #expect(run.asked == [0, 1])
        run.failed(1, .refused("HTTP 403"), at: 60)
        #expect(run.asked == [0, 1, 2])
        run.answered(2, "c", at: 90)
        #expect(run.winner == "c")
        #expect(run.errors == [.unavailable("HTTP 503"), .refused("HTTP 403")])
    }

    @Test func `silence asks the next one too, and the primary still wins within its time`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        #expect(run.asked == [0, 1])
        run.answered(1, "b", at: 450)
        #expect(run.result == nil, "the fallback's answer is held while the primary may still answer")
        #expect(run.wake == 800)
        run.answered(0, "a", at: 790)
        #expect(run.winner == "a")
    }

    @Test func `the held answer is taken when the primary's time is over`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.answered(1, "b", at: 450)
        run.timer(at: 800)
        #expect(run.winner == "b")
        #expect(run.errors == [.timedOut(after: .milliseconds(800))])
    }

    @Test func `the held answer is taken when the primary fails`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.answered(1, "b", at: 450)
        run.failed(0, at: 500)
        #expect(run.winner == "b")
    }

    @Test func `an answer after the source's time comes after everybody else's`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.timer(at: 800)
        run.answered(0, "late", at: 801)
        #expect(run.result == nil)
        run.answered(1, "b", at: 900)
        #expect(run.winner == "b")
    }

    @Test func `a late price is better than none`() {
        var alone = Run(sources: 1)
        alone.timer(at: 800)
        #expect(alone.result == nil)
        #expect(alone.wake == 1000)
        alone.answered(0, "late", at: 990)
        #expect(alone.winner == "late")
        #expect(alone.errors == [])

        var first = Run(sources: 2)
        first.timer(at: 400)
        first.timer(at: 800)
        first.answered(0, "late", at: 801)
        first.failed(1, at: 900)
        #expect(first.winner == "late")
        #expect(first.errors == [.unavailable("HTTP 503")])

        var silent = Run(sources: 2)
        silent.timer(at: 400)
        silent.answered(0, "late", at: 850)
        silent.timer(at: 1000)
        #expect(silent.winner == "late")
    }

    @Test func `who must not be asked after all costs nothing`() {
        var run = Run(sources: 3)
        let actions = run.machine.skipped(0, now: at(0))
        run.take(actions)
        #expect(run.asked == [0, 1])
        run.answered(1, "b", at: 90)
        #expect(run.winner == "b")
        #expect(run.errors == [])
    }

    @Test func `the budget's end fails what is still silent`() {
        var run = Run(sources: 2)
        run.timer(at: 400)
        run.timer(at: 800)
        #expect(run.result == nil)
        #expect(run.wake == 1000)
        run.timer(at: 1000)
        #expect(run.errors == [.timedOut(after: .milliseconds(800)), .timedOut(after: nil)])
        #expect(run.winner == nil)
    }

    @Test func `a hedge is not asked while somebody's answer is held`() {
        var run = Run(sources: 3)
        run.timer(at: 400)
        run.answered(1, "b", at: 450)
        run.timer(at: 799)
        #expect(run.asked == [0, 1])
    }

    @Test func `two silent sources have the third asked`() {
        var run = Run(sources: 3)
        run.timer(at: 400)
        run.timer(at: 800)
        #expect(run.asked == [0, 1, 2])
        run.answered(2, "c", at: 850)
        #expect(run.result == nil, "the second one may still answer")
        run.timer(at: 1000)
        #expect(run.winner == "c")
    }

    @Test func `a cancelled source ends it and starts no fallback`() {
        var run = Run(sources: 2)
        run.failed(0, .cancelled, at: 10)
        guard case .cancelled = run.result else {
            Issue.record("cancelled, not \(String(describing: run.result))")
            return
        }
        #expect(run.asked == [0])
    }

    @Test func `a single source's failure is everybody's`() {
        var run = Run(sources: 1)
        run.failed(0, at: 5)
        #expect(run.errors == [.unavailable("HTTP 503")])
    }

    @Test func `a timer that fires in vain does no harm`() {
        var run = Run(sources: 2)
        run.timer(at: 1)
        run.timer(at: 399)
        #expect(run.asked == [0])
        #expect(run.result == nil)
    }

    /// Whatever happens in whatever order: it finishes exactly once, by the deadline, asks nobody twice and keeps the order.
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
                run.answered(index, "\(index)", at: time)
            case (1, let index?):
                open.remove(index)
                run.failed(index, at: time)
            default: run.timer(at: time)
            }
            open.formUnion(run.asked.suffix(1))
            if time == 1000 { run.timer(at: 1000) }
        }
        #expect(run.asked == Array(0..<run.asked.count), "seed \(seed)")
        if case .answered(let index, let answer, let failures) = run.result {
            #expect(answer == "\(index)", "seed \(seed)")
            let others = failures.map(\.index)
            #expect(others.starts(with: 0..<index), "everybody before the winner has failed, seed \(seed)")
            #expect(!others.contains(index) && others == others.sorted(), "seed \(seed)")
        }
    }
}

private func at(_ milliseconds: Int) -> Duration {
    .milliseconds(milliseconds)
}
