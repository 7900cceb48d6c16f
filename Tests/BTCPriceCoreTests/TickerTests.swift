import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(3))) struct TickerTests {
    /// Counts ticks, and lets a test hold them.
    final class Target: TickTarget {
        private let state = Mutex((running: 0, most: 0, ticks: [Tick](), counts: [Currency: Int](), pauses: 0))
        private let stream: AsyncStream<Void>
        private let began: AsyncStream<Void>.Continuation
        let clock: TestClock
        let work: Duration

        init(clock: TestClock, work: Duration = .zero) {
            self.clock = clock
            self.work = work
            (stream, began) = AsyncStream.makeStream()
        }

        var ticks: [Tick] { state.withLock { $0.ticks } }
        var most: Int { state.withLock { $0.most } }
        var counts: [Currency: Int] { state.withLock { $0.counts } }
        var pauses: Int { state.withLock { $0.pauses } }

        func tick(_ tick: Tick, of currency: Currency) async {
            state.withLock { state in
                state.running += 1
                state.most = max(state.most, state.running)
                state.ticks.append(tick)
                state.counts[currency, default: 0] += 1
            }
            began.yield()
            if work > .zero { do { try await clock.sleep(for: work) } catch {} }
            state.withLock { $0.running -= 1 }
        }

        func paused(_ ticking: Ticking) async { state.withLock { $0.pauses += 1 } }
        func resumed() async {}

        func hasBegun() async { for await _ in stream { return } }
    }

    @Test func `after a tick that takes too long, missed ticks are skipped, and the grid stays`() async {
        let clock = TestClock()
        let target = Target(clock: clock, work: .milliseconds(2300))
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: target)
        await ticker.start()
        await target.hasBegun()
        await clock.run(to: .milliseconds(2300))
        // 1000 and 2000 were missed; 3000 is next, on the grid.
        await clock.run(to: .milliseconds(3000))
        await target.hasBegun()
        #expect(target.ticks.map(\.skipped) == [0, 2])
        #expect(target.ticks.map { clock.offset(of: $0.due) } == [.zero, .seconds(3)])
        #expect(target.most == 1)
        await ticker.stop()
    }

    @Test func `a tick that uses its whole budget does not delay the next one`() async {
        let clock = TestClock()
        let target = Target(clock: clock, work: .milliseconds(1003))
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: target)
        await ticker.start()
        await target.hasBegun()
        await clock.run(to: .milliseconds(1003))
        await target.hasBegun()
        #expect(target.ticks.map(\.skipped) == [0, 0])
        #expect(target.ticks[1].lateness == .milliseconds(3))
        #expect(clock.offset(of: target.ticks[1].due) == .seconds(1))
        await ticker.stop()
    }

    @Test func `after hours of sleep there is one tick at once`() async {
        let clock = TestClock()
        let target = Target(clock: clock)
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: target)
        await ticker.start()
        await target.hasBegun()
        await clock.timer(at: .seconds(1))
        clock.advance(to: .seconds(7200) + .milliseconds(700))
        await target.hasBegun()
        #expect(target.ticks[1].lateness == .seconds(7199) + .milliseconds(700))
        await clock.run(to: .seconds(7201))
        await target.hasBegun()
        #expect(target.ticks.map(\.skipped) == [0, 0, 7199])
        await ticker.stop()
    }

    @Test func `pause cancels the running tick, and resume never runs two ticks at a time`() async {
        let clock = TestClock()
        let target = Target(clock: clock, work: .milliseconds(900))
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: target)
        await ticker.start()
        await target.hasBegun()
        await ticker.pause()
        #expect(await ticker.isPaused)
        #expect(target.pauses == 1)
        #expect(clock.timers == 0, "neither the tick nor the next one waits for a time")
        clock.advance(to: .seconds(10))
        await ticker.resume()
        await target.hasBegun()
        #expect(clock.offset(of: target.ticks[1].due) == .seconds(10))
        #expect(target.most == 1)
        await ticker.stop()
    }

    @Test func `start, pause, resume and stop out of order do nothing`() async {
        let clock = TestClock()
        let target = Target(clock: clock)
        let ticker = OneSecondTicker([.init(.usd)], clock: clock, target: target)
        await ticker.resume()
        await ticker.pause()
        #expect(clock.timers == 0 && target.ticks.isEmpty)
        await ticker.start()
        await ticker.start()
        await target.hasBegun()
        await ticker.stop()
        await ticker.stop()
        await ticker.resume()
        #expect(clock.timers == 0)
        #expect(target.ticks.count == 1)
        #expect(target.pauses == 0)
        await ticker.start()
        await target.hasBegun()
        #expect(target.ticks.count == 2)
        await ticker.stop()
    }

    @Test func `each currency has its schedule, and a change starts, moves and ends them`() async {
        let clock = TestClock()
        let target = Target(clock: clock)
        let ticker = OneSecondTicker(
            [.init(.usd), .init(.eur, .seconds(10))], clock: clock, target: target)
        func run(to second: Int, ticks: Int) async {
            if second > 0 { await clock.run(to: .seconds(second)) }
            for _ in 0..<ticks { await target.hasBegun() }
        }
        await ticker.start()
        await run(to: 0, ticks: 2)
        for second in 1...19 { await run(to: second, ticks: second == 10 ? 2 : 1) }
        #expect(target.counts == [.usd: 20, .eur: 2])
        // The tick has ended, and the next one waits.
        await clock.timer(at: .seconds(20))
        await ticker.change([.init(.usd, .seconds(5)), .init(.gbp, .seconds(10))])
        await run(to: 0, ticks: 2)
        await run(to: 24, ticks: 1)
        await run(to: 29, ticks: 2)
        #expect(target.counts == [.usd: 23, .eur: 2, .gbp: 2])
        await ticker.stop()
        #expect(clock.timers == 0)
    }

    @Test(arguments: [1, 7, 100, 1000, 86_400]) func `deadlines do not drift`(count: Int) {
        let start = TestClock().now
        var schedule = TickSchedule(start: start, interval: .milliseconds(1000))
        var now = start
        for index in 0..<count {
            let (due, skipped) = schedule.advance(now: now)
            #expect(skipped == 0)
            #expect(start.duration(to: due) == .seconds(index))
            // The work takes some time, each time a different one.
            now = due.advanced(by: .milliseconds(index * 37 % 999))
        }
    }
}
