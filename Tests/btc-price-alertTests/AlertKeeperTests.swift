import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import TestSupport
import Testing

@testable import btc_price_alert

/// The alerts over time: what fires, once, and what is kept over restarts and gaps.
@Suite struct AlertKeeperTests {
    private static let minute = Int64(60_000)

    /// A service that runs, is stopped and is started again.
    private struct Scene {
        /// Milliseconds since the boot.
        var time: Int64 = 10 * AlertKeeperTests.minute
        var keeper = AlertKeeper()
        let alerts: [Alert]

        init(_ alerts: Alert...) {
            self.alerts = alerts
            set(alerts)
        }

        /// The file has these alerts now.
        mutating func set(_ alerts: [Alert]) { keeper.set(alerts, names: alerts.map(\.name), at: now) }

        /// The wall clock began at a whole minute.
        var now: ObservationTime {
            ObservationTime(
                wall: Timestamp(milliseconds: 1_699_999_980_000 + time), boottime: BootTime(milliseconds: time))
        }

        func state(_ value: Price?, _ confirmation: BTCPriceCore.Confirmation = .confirmed) -> PriceState {
            let quote = value.map {
                PriceQuote(value: $0, currency: "USD", timestamp: now.wall, source: "kraken", market: "BTC/USD")
            }
            return PriceState(
                tick: 1, freshness: value == nil ? .none : .fresh, quote: quote, observedBoottime: now.boottime,
                confirmation: confirmation, failure: nil)
        }

        /// Ticks once a second at a price; `nil` for a tick without one.
        mutating func tick(
            _ value: Price?, for seconds: Int = 1, _ confirmation: BTCPriceCore.Confirmation = .confirmed
        ) -> [Firing] {
            (0..<seconds).flatMap { _ in
                time += 1000
                return keeper.see(state(value, confirmation), interval: 1000, at: now) + keeper.pass(at: now)
            }
        }

        /// No tick comes.
        mutating func pass(_ seconds: Int) -> [Firing] {
            (0..<seconds).flatMap { _ in
                time += 1000
                return keeper.pass(at: now)
            }
        }

        /// Stops, and starts after a while.
        mutating func restart(after seconds: Int64, _ alerts: [Alert]? = nil) {
            var records = AlertRecords()
            (records.alerts, records.seen) = keeper.records(at: now)
            // As they are written and read.
            var writer = JSONWriter(.lines)
            records.write(to: &writer)
            let read = (try? JSONValue(parsing: writer.bytes[...])).flatMap { try? AlertRecords(json: $0) }
            #expect(read == records)
            time += seconds * 1000
            keeper = AlertKeeper()
            keeper.restore(records)
            set(alerts ?? self.alerts)
        }

        /// The history of the gap is requested now.
        mutating func fill(_ candles: [Candle]?) -> [Firing] {
            guard let gap = keeper.nextGap(at: now.boottime) else { return [] }
            return keeper.fill(gap, candles, at: now)
        }

        /// The candle of a minute, counted from the present one.
        func candle(_ place: Int64, _ low: Price, _ high: Price, origin: String = Candle.own) -> Candle {
            let start = Candle.Step.minute.start(of: now.wall.wholeSeconds) + place * 60
            return Candle(
                start: start, open: high, high: high, low: low, close: high, ticks: 60, fresh: 60, origin: origin,
                doubtful: 0, single: 0)
        }
    }

    private func alert(
        _ condition: AlertRule.Condition, name: String = "a", _ change: (inout AlertRule) -> Void = { _ in }
    ) -> Alert {
        var rule = AlertRule(condition)
        change(&rule)
        return Alert(name: name, currency: "USD", rule: rule, notifies: true, command: [])
    }

    private func moments(_ firings: [Firing]) -> [String] {
        firings.map { firing in
            switch firing.moment {
            case .seen: "seen"
            case .missed(let time, let isOver): "missed \(time.wholeSeconds % 3600 / 60)\(isOver ? " over" : "")"
            case .between(_, _, let isOver): "between\(isOver ? " over" : "")"
            }
        }
    }

    // MARK: - Live

    @Test func `a price that crosses fires once, and again after it has been back`() {
        var scene = Scene(alert(.below(100)) { $0.rearm = 1 })
        #expect(scene.tick(101, for: 3).isEmpty)
        #expect(moments(scene.tick(99)) == ["seen"])
        #expect(scene.tick(99, for: 10).isEmpty)
        #expect(scene.tick(Price(1009, scale: 1)).isEmpty, "not far enough back")
        #expect(scene.tick(99).isEmpty)
        #expect(scene.tick(101).isEmpty)
        #expect(moments(scene.tick(99)) == ["seen"])
    }

    @Test func `a new alert that is beyond fires nothing, and a changed one is new`() {
        var scene = Scene(alert(.below(100)))
        #expect(scene.tick(99, for: 5).isEmpty)
        #expect(scene.tick(101).isEmpty)
        scene.set([alert(.below(102))])
        #expect(scene.tick(101, for: 5).isEmpty)
        // Another way to tell it changes nothing.
        scene.set([
            Alert(name: "a", currency: "USD", rule: AlertRule(.below(102)), notifies: false, command: ["x"])
        ])
        #expect(scene.tick(103).isEmpty)
        #expect(moments(scene.tick(101)) == ["seen"])
    }

    @Test func `200 crossings in a minute fire as often as the rule says`() {
        func count(_ change: (inout AlertRule) -> Void) -> (fired: Int, heldBack: Int) {
            var scene = Scene(alert(.below(100), change))
            _ = scene.tick(Price(1001, scale: 1))
            var (fired, held) = (0, 0)
            for index in 0..<400 {
                scene.time += 150
                let value = Price(index % 2 == 0 ? 999 : 1001, scale: 1)
                let firings = scene.keeper.see(scene.state(value), interval: 1000, at: scene.now)
                fired += firings.count
            }
            scene.time += 3_600_000 - 60_000
            _ = scene.keeper.see(scene.state(Price(1001, scale: 1)), interval: 1000, at: scene.now)
            _ = scene.fill(nil)
            scene.time += 1000
            held =
                scene.keeper.see(scene.state(Price(999, scale: 1)), interval: 1000, at: scene.now).first?.heldBack ?? -1
            return (fired, held)
        }
        #expect(count { _ in } == (200, 0))
        #expect(count { $0.rearm = 1 } == (1, -1))
        #expect(count { $0.pause = .seconds(600) } == (1, 199))
        #expect(count { $0.isOnce = true } == (1, -1))
    }

    @Test func `a stale price fires and resolves nothing but the alert for it`() {
        var scene = Scene(alert(.stale(.seconds(60)), name: "s"), alert(.below(100)))
        #expect(scene.tick(101, for: 3).isEmpty)
        #expect(scene.tick(nil, for: 58).isEmpty)
        #expect(moments(scene.tick(nil, for: 3)) == ["seen"])
        #expect(scene.pass(600).isEmpty)
        // The daemon is back.
        #expect(scene.tick(101).isEmpty)
        #expect(scene.fill([]).isEmpty)
        // Without any tick, it is stale as well.
        #expect(scene.pass(58).isEmpty)
        #expect(scene.pass(10).map(\.alert.name) == ["s"])
    }

    @Test func `an unconfirmed crossing that lasts a minute fires, and says so`() {
        var scene = Scene(alert(.below(100)), alert(.below(100), name: "c") { $0.trust = .confirmed })
        _ = scene.tick(101)
        #expect(scene.tick(99, for: 60, .unconfirmed).isEmpty)
        let firings = scene.tick(99, for: 2, .unconfirmed)
        #expect(
            firings.first?.message(TimestampFormatter(isUTC: true))
                == "Bitcoin is below $100.00: $99.00, which no other exchange confirms.")
    }

    @Test func `a paused alert tells of nothing, and what it would have told does not count`() {
        var scene = Scene(alert(.below(100)) { $0.isOnce = true })
        _ = scene.tick(101)
        scene.keeper.paused = ["a"]
        #expect(scene.tick(99, for: 5).isEmpty)
        scene.keeper.paused = []
        #expect(scene.tick(99).isEmpty, "what began in the pause is not told later")
        _ = scene.tick(101)
        #expect(moments(scene.tick(99)) == ["seen"])
        _ = scene.tick(101)
        #expect(scene.tick(99).isEmpty, "once")
    }

    @Test func `a sleep of the machine makes no price stale, and lets nothing last`() {
        var scene = Scene(
            alert(.stale(.seconds(300)), name: "s"), alert(.unsure(bound: nil), name: "u") { $0.hold = .seconds(300) })
        _ = scene.tick(101, for: 3)
        _ = scene.tick(101, for: 3, .unconfirmed)
        scene.time += 8 * 3_600_000
        #expect(scene.pass(5).isEmpty)
        #expect(scene.tick(101, for: 3, .unconfirmed).isEmpty)
        #expect(scene.pass(299).isEmpty)
        #expect(scene.pass(20).map(\.alert.name) == ["s"])
    }

    @Test func `another way to tell it starts no new measure`() {
        var scene = Scene(alert(.change(.percent(5), within: .seconds(3600))))
        _ = scene.tick(100, for: 5)
        var changed = scene.alerts[0].rule
        changed.pause = .seconds(60)
        scene.set([Alert(name: "a", currency: "USD", rule: changed, notifies: false, command: ["x"])])
        #expect(moments(scene.tick(106)) == ["seen"])
    }

    @Test func `the message of a change says its direction and its size, in the unit of the condition`() {
        var scene = Scene(
            alert(.change(.percent(5), within: .seconds(3600))), alert(.change(.amount(5), within: nil), name: "b"))
        _ = scene.tick(100) + scene.tick(103)
        let told = (scene.tick(97) + scene.tick(112)).map { $0.message(TimestampFormatter(isUTC: true)) }
        #expect(
            told == [
                "Bitcoin has fallen by 5.83 % within 60 min: $97.00.",
                "Bitcoin has risen by 15.46 % within 60 min: $112.00.",
                "Bitcoin has risen by $12.00: $112.00.",
            ])
    }

    // MARK: - Restarts and gaps

    @Test func `what was kept of an alert with a mistake stays kept, and of one that was added again nothing`() {
        var scene = Scene(alert(.below(100)) { $0.isOnce = true })
        _ = scene.tick(101)
        #expect(moments(scene.tick(99)) == ["seen"])
        var records = AlertRecords()
        (records.alerts, records.seen) = scene.keeper.records(at: scene.now)
        scene.keeper = AlertKeeper()
        scene.keeper.restore(records)
        // The file can't be read, then its table.
        #expect(scene.keeper.records(at: scene.now).alerts == records.alerts)
        scene.keeper.set([], names: ["a"], at: scene.now)
        #expect(scene.keeper.records(at: scene.now).alerts == records.alerts)
        scene.set(scene.alerts)
        #expect(scene.keeper.records(at: scene.now).alerts.map(\.isOver) == [true])
        var again = scene.alerts[0]
        again.added = "2026-11-29T21:00:00Z"
        scene.set([again])
        #expect(scene.keeper.records(at: scene.now).alerts.map(\.isOver) == [false])
        scene.set([])
        #expect(scene.keeper.records(at: scene.now).alerts.isEmpty)
    }

    @Test func `an alert that is added while the history is waited for fires for nothing before it`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(102, for: 5)
        scene.restart(after: 300)
        _ = scene.tick(102)
        scene.set(scene.alerts + [alert(.below(95), name: "new")])
        let firings = scene.fill((-5...0).map { scene.candle($0, $0 == -2 ? 90 : 101, 102) })
        #expect(firings.map(\.alert.name) == ["a"])
        #expect(moments(scene.tick(94)) == ["seen", "seen"])
    }

    @Test func `a gap stays open while the price is stale`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(101, for: 5)
        scene.restart(after: 600)
        _ = scene.tick(98)
        _ = scene.pass(700)
        #expect(scene.fill([]).isEmpty)
        _ = scene.tick(98)
        #expect(moments(scene.fill([])) == ["between"])
    }

    @Test func `a change that was held back is not measured again after a restart`() {
        var scene = Scene(alert(.change(.percent(5), within: .seconds(3600))) { $0.pause = .seconds(1800) })
        _ = scene.tick(100, for: 5)
        #expect(moments(scene.tick(106)) == ["seen"])
        let start = scene.now.wall.wholeSeconds
        scene.time += 60_000
        #expect(scene.tick(112, for: 5).isEmpty, "held back")
        scene.time += 60_000
        _ = scene.tick(112, for: 1800)
        scene.restart(after: 20)
        _ = scene.tick(112)
        let candles = (Int64(-33)...0).map { place in
            var candle = scene.candle(place, 112, 112)
            if candle.start < start + 60 { (candle.open, candle.high, candle.low, candle.close) = (106, 106, 106, 106) }
            return candle
        }
        #expect(scene.fill(candles).isEmpty)
        #expect(scene.tick(112, for: 5).isEmpty)
    }

    @Test func `a clock that is set only after the start finds the gap, too`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(101, for: 5)
        var records = AlertRecords()
        (records.alerts, records.seen) = scene.keeper.records(at: scene.now)
        // It starts with the time of before, and the clock is set before the first price.
        scene.keeper = AlertKeeper()
        scene.keeper.restore(records)
        scene.set(scene.alerts)
        scene.time += 8 * 3_600_000
        _ = scene.tick(98)
        #expect(moments(scene.fill(nil)) == ["between"])
    }

    @Test func `a crossing while off fires once, with its time from the history`() {
        var scene = Scene(alert(.below(100)) { $0.rearm = 1 })
        _ = scene.tick(101, for: 5)
        scene.restart(after: 5 * 60)
        #expect(scene.tick(98).isEmpty, "it waits for the history")
        let candles = [
            scene.candle(-5, 90, 101), scene.candle(-4, 101, 102), scene.candle(-3, 101, 102),
            scene.candle(-2, 99, 101),
            scene.candle(-1, 98, 99), scene.candle(0, 98, 98),
        ]
        // The first minute has prices that were checked.
        #expect(moments(scene.fill(candles)) == ["missed \(scene.now.wall.wholeSeconds % 3600 / 60 - 2)"])
        #expect(scene.tick(98, for: 5).isEmpty)
        scene.restart(after: 600)
        #expect(scene.tick(98).isEmpty)
        #expect(scene.fill((-10...0).map { scene.candle($0, 98, 98) }).isEmpty, "it was told")
    }

    @Test func `without a history it fires once, between two times`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(101, for: 5)
        scene.restart(after: 600)
        #expect(scene.tick(98).isEmpty)
        let firings = scene.fill(nil)
        #expect(moments(firings) == ["between"])
        #expect(
            firings.first?.message(TimestampFormatter(isUTC: true))
                == "Bitcoin went below $100.00, between Nov 14 2023, 22:23 and Nov 14 2023, 22:33: $98.00.")
        #expect(scene.tick(98, for: 100).isEmpty)
    }

    @Test func `it waits for the gap to be filled, at most ten minutes`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(101, for: 5)
        scene.restart(after: 600)
        _ = scene.tick(98)
        var waited = 0
        while scene.fill([]).isEmpty, waited < 700 {
            #expect(scene.tick(98).isEmpty)
            waited += 1
        }
        #expect((600...631).contains(waited), "\(waited) s")
    }

    @Test func `it does not wait for the minutes that can't be requested yet`() {
        for second in [0, 29, 31, 59] as [Int64] {
            var scene = Scene(alert(.below(100)))
            scene.time += second * 1000
            _ = scene.tick(101)
            scene.restart(after: 599)
            _ = scene.tick(98)
            let end = Candle.Step.minute.start(of: scene.now.wall.wholeSeconds - Backfill.margin)
            let candles = (-11...0).map { scene.candle($0, 101, 101, origin: "coinbase") }
            var other = scene
            #expect(other.fill(candles.filter { $0.start < end - 120 }).isEmpty)
            #expect(moments(scene.fill(candles.filter { $0.start < end })) == ["between"])
        }
    }

    @Test func `a crossing and return while off fires, and says so`() {
        var scene = Scene(alert(.below(100)))
        _ = scene.tick(102, for: 5)
        scene.restart(after: 300)
        _ = scene.tick(102)
        func candles(_ origin: String, low: Price) -> [Candle] {
            (-5...0).map { scene.candle($0, $0 == -2 ? low : 101, 102, origin: origin) }
        }
        // The range of an exchange's candle is not what this daemon would have shown; its close is.
        var other = scene
        #expect(other.fill(candles("kraken", low: 90)).isEmpty)
        #expect(other.tick(102, for: 5).isEmpty)
        let firings = scene.fill(candles(Candle.own, low: 90))
        #expect(moments(firings) == ["missed \(scene.now.wall.wholeSeconds % 3600 / 60 - 2) over"])
        #expect(firings.first?.message(TimestampFormatter(isUTC: true)).contains("; that is over: $102.00.") == true)
    }

    @Test func `a crossing after minutes that are not known was between two times`() {
        for (known, word) in [([-9, -8, -3, -2, -1, 0], "between over"), ([-9, -8, -4, -3, -2, -1, 0], "missed")] {
            var scene = Scene(alert(.below(100)))
            _ = scene.tick(102, for: 5)
            scene.restart(after: 590)
            _ = scene.tick(102)
            let candles = known.map { scene.candle(Int64($0), $0 == -3 ? 90 : 101, 102) }
            // They are all that comes.
            var firings = scene.fill(candles)
            for _ in 0..<700 where firings.isEmpty {
                _ = scene.tick(102)
                firings = scene.fill(candles)
            }
            #expect(moments(firings)[0].hasPrefix(word))
            #expect(firings[0].message(TimestampFormatter(isUTC: true)).hasSuffix("; that is over: $102.00."))
        }
    }

    @Test func `a missed crossing has its own doubt, and the price of now has its own`() {
        func message(then: Int64, _ now: BTCPriceCore.Confirmation) -> String? {
            var scene = Scene(alert(.below(100)) { $0.rearm = 1 })
            _ = scene.tick(102, for: 5)
            scene.restart(after: 300)
            _ = scene.tick(102, for: 1, now)
            let candles = (-5...0).map { (minute: Int64) in
                var candle = scene.candle(minute, minute < -1 && minute > -5 ? 90 : 101, minute < -1 ? 95 : 102)
                if minute < -1 { candle.doubtful = then }
                return candle
            }
            return scene.fill(candles).first?.message(TimestampFormatter(isUTC: true))
        }
        let then = "; no other exchange confirmed that; that is over: $102.00"
        #expect(message(then: 60, .confirmed)?.hasSuffix("\(then).") == true)
        #expect(message(then: 60, .unconfirmed)?.hasSuffix("\(then), which no other exchange confirms.") == true)
        #expect(message(then: 0, .confirmed)?.hasSuffix("checked; that is over: $102.00.") == true)
    }

    @Test func `an alert that fires once says that it is over, too, and several crossings are counted`() {
        for isOnce in [true, false] {
            var scene = Scene(alert(.below(100)) { $0.isOnce = isOnce })
            _ = scene.tick(102, for: 5)
            scene.restart(after: 300)
            _ = scene.tick(102)
            let firings = scene.fill((-5...0).map { scene.candle($0, $0 == -3 || $0 == -1 ? 90 : 101, 102) })
            #expect(moments(firings) == ["missed \(scene.now.wall.wholeSeconds % 3600 / 60 - 3) over"])
            #expect(firings.map(\.heldBack) == [isOnce ? 0 : 1])
        }
    }

    @Test func `a change is measured over a gap that the history does not know`() {
        var scene = Scene(alert(.change(.percent(5), within: .seconds(3600))))
        _ = scene.tick(100, for: 5)
        _ = scene.pass(97)
        _ = scene.tick(90)
        let firings = scene.fill(nil)
        #expect(moments(firings) == ["between"])
        #expect(firings.first?.move == PriceMove(from: 100, to: 90))
    }

    @Test func `a gap while it runs is one as well: the daemon was off, or the machine slept`() {
        var scene = Scene(alert(.above(100)))
        _ = scene.tick(99, for: 5)
        scene.time += 8 * 3_600_000
        #expect(scene.tick(101).isEmpty)
        #expect(moments(scene.fill(nil)) == ["between"])
        // A short one is none.
        _ = scene.tick(98)
        scene.time += 60_000
        #expect(moments(scene.tick(101)) == ["seen"])
    }

    @Test func `a change is measured over a restart from the prices before it`() {
        var scene = Scene(alert(.change(.percent(5), within: .seconds(3600))))
        _ = scene.tick(100, for: 5)
        scene.restart(after: 20)
        _ = scene.tick(103)
        #expect(
            scene.fill((-30...0).map { scene.candle($0, $0 < -20 ? 98 : 102, $0 < -20 ? 98 : 103) }).isEmpty == false)
        #expect(scene.tick(103, for: 5).isEmpty)
        // Without it, the change begins at the first price.
        var other = Scene(alert(.change(.percent(5), within: .seconds(3600))))
        _ = other.tick(100, for: 5)
        other.restart(after: 20)
        _ = other.tick(103)
        #expect(other.fill(nil).isEmpty)
        #expect(moments(other.tick(109)) == ["seen"])
    }

    @Test func `a step of the clock fires nothing`() {
        var scene = Scene(alert(.below(100)), alert(.stale(.seconds(60)), name: "s"))
        _ = scene.tick(101, for: 5)
        for step in [-86_400_000, 86_400_000, 315_360_000_000] as [Int64] {
            let now = ObservationTime(
                wall: Timestamp(milliseconds: scene.now.wall.milliseconds + step), boottime: scene.now.boottime + 1000)
            #expect(scene.keeper.see(scene.state(101), interval: 1000, at: now).isEmpty)
            #expect(scene.keeper.gaps.isEmpty)
        }
    }

    /// A hundred random days of prices, restarts and daemons that are off: a crossing that is not missed fires exactly once.
    @Test func `random restarts lose no crossing and repeat none`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            var scene = Scene(alert(.below(100)))
            var (isBelow, expected, fired) = (false, 0, 0)
            _ = scene.tick(101)
            for _ in 0..<40 {
                let goesBelow = Bool.random(using: &generator)
                if goesBelow, !isBelow { expected += 1 }
                isBelow = goesBelow
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: scene.restart(after: Int64.random(in: 1...3600, using: &generator))
                case 1: scene.time += Int64.random(in: 1...3_600_000, using: &generator)
                default: break
                }
                fired += scene.tick(isBelow ? 99 : 101).count
                fired += scene.fill(nil).count
                fired += scene.tick(isBelow ? 99 : 101).count
            }
            #expect(fired == expected)
        }
    }
}
