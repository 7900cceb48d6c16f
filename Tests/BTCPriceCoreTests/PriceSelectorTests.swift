import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

/// A belief, the prices of a round, and the decision: belief in, decision out.
private struct SelectorCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var rules = SelectionRules()
    var markets = Rounds.four
    /// The prices of the round; a market without one does not respond.
    let prices: [Market: String]
    var peg: String?
    /// Seconds after the prices of the belief.
    var at = 1.0
    /// The preparation before the round.
    var before: @Sendable (Rounds) -> Void = { _ in }
    var belief = Belief.ofToday
    let expected: String

    func decide() -> String {
        let rounds = Rounds(markets, rules: rules, belief: belief)
        before(rounds)
        rounds.prices = prices
        rounds.peg = peg
        return rounds.tick(at: at)?.text ?? "none"
    }

    static let all: [SelectorCase] = [
        SelectorCase(
            testDescription: "within the level no other market is needed", prices: [.binance: "68910"],
            expected: "68910 binance single"),
        SelectorCase(
            testDescription: "a jump that no market can confirm is withheld", markets: [.binance],
            prices: [.binance: "65500"], expected: "withheld binance"),
        SelectorCase(
            testDescription: "a jump that another market has made too is confirmed",
            prices: [.binance: "65500", .coinbase: "65520"],
            expected: "65500 binance confirmed"),
        SelectorCase(
            testDescription: "a price that has left the level is compared with another market",
            prices: [.binance: "68500", .coinbase: "68510"], expected: "68500 binance confirmed"),
        SelectorCase(
            testDescription: "a price that has left the level is shown if no other market responds",
            prices: [.binance: "68500"],
            expected: "68500 binance single"),
        SelectorCase(
            testDescription: "two markets that agree outvote one",
            prices: [.binance: "65500", .coinbase: "68850", .bitstamp: "68900"], expected: "68850 coinbase confirmed"),
        SelectorCase(
            testDescription: "the bound for agreement is absolute: prices 0.9 % apart in a fall of 5 % do not agree",
            prices: [.binance: "65500", .coinbase: "66100", .bitstamp: "66110"], expected: "66100 coinbase confirmed"),
        SelectorCase(
            testDescription: "two thin markets agree within half of both spreads",
            prices: [.binance: "65500", .coinbase: "65900"],
            before: { $0.halfSpreads = [.binance: 0.003, .coinbase: 0.006] },
            expected: "65500 binance confirmed"),
        SelectorCase(
            testDescription:
                "beyond half of both spreads they don't, and a spread counts up to 0.7 %: the one nearer to the last price is shown",
            prices: [.binance: "65500", .coinbase: "66000"],
            before: { $0.halfSpreads = [.binance: 0.003, .coinbase: 0.02] },
            expected: "66000 coinbase unconfirmed"),
        SelectorCase(
            testDescription: "if no two markets agree, the one nearest to the median is shown",
            prices: [.binance: "63000", .coinbase: "66800", .bitstamp: "65000"], expected: "65000 bitstamp unconfirmed"),
        SelectorCase(
            testDescription: "a witness that has not changed since before the move does not count",
            prices: [.binance: "66800", .coinbase: "68905", .bitstamp: "68895"], at: 20,
            before: { rounds in
                rounds.prices = [.coinbase: "68905", .bitstamp: "68895"]
                rounds.observe(.coinbase, at: 2)
                rounds.observe(.bitstamp, at: 2)
            }, expected: "withheld binance"),
        SelectorCase(
            testDescription: "a witness whose own time is before the move does not count",
            prices: [.binance: "66800", .coinbase: "68905"], at: 30,
            before: { rounds in
                rounds.prices = [.binance: "68901"]
                _ = rounds.tick(at: 29)
                let made = Rounds.time(10).wall
                rounds.positions[.coinbase] = FeedPosition(time: made)
            }, expected: "withheld binance"),
        SelectorCase(
            testDescription: "a jump that no other market can judge is shown if another currency has jumped too",
            prices: [.binance: "66000"], at: 2,
            before: { rounds in
                rounds.prices = [.binance: "68900"]
                rounds.other = OtherCurrency(currency: .eur, log: price("59000").logarithm, at: Rounds.time(1).boottime)
                _ = rounds.tick(at: 1)
                rounds.other = OtherCurrency(currency: .eur, log: price("56500").logarithm, at: Rounds.time(2).boottime)
            }, expected: "66000 binance single"),
        SelectorCase(
            testDescription: "the very first price is shown as unconfirmed", prices: [.coinbase: "22000"],
            belief: Belief(), expected: "22000 coinbase unconfirmed"),
        SelectorCase(
            testDescription: "the very first price is shown as unconfirmed if another one contradicts it",
            prices: [.coinbase: "22000", .bitstamp: "24000"], belief: Belief(),
            expected: "22000 coinbase unconfirmed"),
        SelectorCase(
            testDescription: "after a gap, of two prices the one nearer to the last price is shown",
            prices: [.binance: "57000", .coinbase: "68910"], at: 10_800, expected: "68910 coinbase unconfirmed"),
        SelectorCase(
            testDescription: "after a gap two markets outvote one",
            prices: [.binance: "57000", .coinbase: "68910", .kraken: "68905"], at: 10_800,
            expected: "68910 coinbase confirmed"),
        SelectorCase(
            testDescription: "a USDT off its peg does not cause a contradiction once Kraken has reported it",
            prices: [.binance: "25000", .coinbase: "22000", .kraken: "22010"], peg: "0.88",
            belief: Belief(), expected: "25000 binance confirmed"),
        SelectorCase(
            testDescription:
                "off its peg a price in USDT is converted, and in doubt if one exchange alone states the rate",
            rules: SelectionRules(peg: .convert),
            prices: [.binance: "68950"], at: 602, before: { $0.leavePeg() }, expected: "62055 binance unconfirmed"),
        SelectorCase(
            testDescription: "off its peg a price in USDT is shown as it is", prices: [.binance: "68950"], at: 602,
            before: { $0.leavePeg() }, expected: "68950 binance single"),
        SelectorCase(
            testDescription: "a price in USDT that can't be converted gives way to a dollar price",
            rules: SelectionRules(peg: .convert), prices: [.binance: "90000", .coinbase: "68900"],
            belief: Belief(), expected: "68900 coinbase unconfirmed"),
        SelectorCase(
            testDescription: "a median leaves out prices far from it",
            rules: SelectionRules(mode: .median, quorum: 2),
            prices: [.coinbase: "68910", .bitstamp: "68930", .kraken: "90000"], expected: "68920 median confirmed"),
        SelectorCase(
            testDescription: "fewer prices than the quorum give no price",
            rules: SelectionRules(mode: .median, quorum: 3), prices: [.coinbase: "68900", .bitstamp: "68910"],
            expected: "withheld median"),
        SelectorCase(
            testDescription:
                "a source that can't be requested at every tick supports a median for the time that its limits require",
            rules: SelectionRules(mode: .median, quorum: 3),
            prices: [.coinbase: "68900", .bitstamp: "68910"], at: 5,
            before: { rounds in
                rounds.prices = [.kraken: "68920"]
                rounds.paces = [.kraken: .seconds(2)]
                rounds.observe(.kraken, at: 1)
                rounds.isUnreachable.insert(.kraken)
            }, expected: "68910 median confirmed"),
        SelectorCase(
            testDescription:
                "a median of three markets begins although one of them is in USDT and nothing is known yet",
            rules: SelectionRules(mode: .median, quorum: 3),
            prices: [.binance: "68950", .coinbase: "68900", .kraken: "68910"],
            belief: Belief(), expected: "68910 median confirmed"),
        SelectorCase(
            testDescription: "with a quorum of one, the middle price is shown and not an outlier",
            rules: SelectionRules(mode: .median, quorum: 1),
            prices: [.coinbase: "66000", .bitstamp: "72000", .kraken: "68900"], expected: "68900 kraken unconfirmed"),
    ]
}

@Suite struct PriceSelectorTests {
    @Test(arguments: SelectorCase.all)
    private func `belief in, decision out`(_ row: SelectorCase) {
        #expect(row.decide() == row.expected)
    }

    @Test(arguments: [(0, 0.006), (1, 0.009), (60, 0.0292), (3600, 0.186), (-5, 0.006)])
    func `the bound grows with the root of the time`(seconds: Int64, bound: Double) {
        #expect(abs(Ballot.jump(after: seconds * 1000) - bound) < 0.0001)
    }

    @Test(arguments: [("68290", true), ("68200", false), ("69510", true), ("69600", false)])
    func `a move within the bound is accepted, one beyond it is not`(value: String, isBelieved: Bool) throws {
        let rounds = Rounds([.binance])
        rounds.prices = [.binance: value]
        let decision = try #require(rounds.tick(at: 1))
        #expect((decision.quote != nil) == isBelieved)
        if !isBelieved { #expect(decision.withheld?.error.description.contains("no second source") == true) }
    }

    @Test func `a decision has a verdict for each market`() throws {
        let rounds = Rounds()
        rounds.prices = [.binance: "65500", .bitstamp: "68850", .kraken: "68900"]
        #expect(
            try #require(rounds.tick(at: 1)).verdicts == [
                .binance: .disagrees, .coinbase: .failed, .bitstamp: .used, .kraken: .agrees,
            ])
        #expect(rounds.requested == [.binance, .coinbase, .bitstamp, .kraken])
        rounds.prices = [.binance: "68910", .coinbase: "68900"]
        let calm = Rounds()
        calm.prices = rounds.prices
        #expect(
            try #require(calm.tick(at: 1)).verdicts == [
                .binance: .used, .coinbase: .notNeeded, .bitstamp: .notNeeded, .kraken: .notNeeded,
            ])
        #expect(calm.requested == [.binance])
    }

    @Test func `a contradiction names the prices`() throws {
        let rounds = Rounds([.binance, .coinbase, .bitstamp])
        rounds.prices = [.binance: "65500", .coinbase: "68850", .bitstamp: "68900"]
        #expect(
            try #require(rounds.tick(at: 1)).rejected.first
                == SourceFailure(
                    source: "binance",
                    error: .implausible(
                        "65500 BTC/USDT is -4.9 % from the price of 1 s ago, which coinbase (68850) and bitstamp (68900) contradict"
                    )))
        let two = Rounds([.binance, .coinbase])
        two.prices = [.binance: "65500", .coinbase: "68850"]
        #expect(try #require(two.tick(at: 1)).text == "68850 coinbase unconfirmed")
        #expect(two.tracker.state.standing.warning == "binance ($65,500.00) contradicts coinbase ($68,850.00)")
    }

    @Test func `a price that slides needs a witness once it has left the level, whatever the slope`() {
        for step in [0.00005, 0.0005, 0.003, 0.008] {
            let rounds = Rounds()
            var log = price("68900").logarithm
            var worst = 0.0
            for second in 1...7200 {
                log -= step
                let time = Double(second)
                rounds.prices = [.coinbase: alive(68_900, time), .kraken: alive(68_901, time)]
                rounds.prices[.binance] = "\(Int(exp(log) * 100))e-2"
                guard let decision = rounds.tick(at: time), decision.quote?.source == "binance" else { break }
                worst = price("68900").logarithm - log
                if second % 12 == 0 { rounds.observe(second % 24 == 0 ? .coinbase : .kraken, at: time) }
                if log < price("48000").logarithm { break }
            }
            #expect(worst < 0.01, "\(worst * 100) % off at \(step * 100) % a second")
        }
    }

    @Test func `a stale price keeps what was said at its moment, but says nothing about now`() throws {
        let rounds = Rounds([.binance, .coinbase])
        rounds.prices = [.binance: "65500", .coinbase: "68850"]
        for second in 1...3 { _ = rounds.tick(at: Double(second)) }
        let fresh = rounds.tracker.state
        #expect(fresh.standing.uncertainty != nil && fresh.standing.warning != nil)
        let late = fresh.aged(at: Rounds.time(60).boottime)
        _ = rounds.tracker.failed(FetchFailure(failures: []), isTick: true, at: Rounds.time(4).boottime)
        let failed = rounds.tracker.state
        _ = rounds.tracker.paused()
        for stale in [late, failed, rounds.tracker.state] {
            #expect(stale.freshness == .stale && stale.price == fresh.price)
            #expect(stale.standing.uncertainty == nil && stale.standing.consensus == nil)
            #expect(stale.standing.warning == fresh.standing.warning && stale.standing.isInDoubt)
        }
    }

    @Test func `a jump that stays is accepted after three ticks, but not shortly after a contradiction`() throws {
        let rounds = Rounds([.binance])
        let prices = ["65500", "65510", "60000", "60010", "60020"]
        var texts: [String] = []
        for (index, value) in prices.enumerated() {
            rounds.prices = [.binance: value]
            let decision = try #require(rounds.tick(at: Double(index + 1)))
            texts.append(decision.text)
            if index == 0 {
                #expect("\(try #require(decision.withheld).error)".hasSuffix("after 3 ticks in agreement (1 of 3)"))
            }
        }
        // Another jump restarts the count.
        #expect(texts == Array(repeating: "withheld binance", count: 4) + ["60020 binance unconfirmed"])
        let contradicted = Rounds([.binance, .coinbase])
        contradicted.prices = [.binance: "65500", .coinbase: "68901"]
        #expect(contradicted.tick(at: 1)?.text == "68901 coinbase unconfirmed")
        contradicted.prices = [.binance: "65500"]
        for second in 2...10 { #expect(contradicted.tick(at: Double(second))?.quote == nil) }
    }

    @Test func `an unconfirmed price stays unconfirmed until another source agrees`() {
        let rounds = Rounds([.binance, .coinbase])
        for second in 1...3 {
            rounds.prices = [.binance: alive(65_500, Double(second))]
            _ = rounds.tick(at: Double(second))
        }
        #expect(rounds.tracker.state.confirmation == .unconfirmed)
        let agreed = rounds.copy()
        agreed.prices[.coinbase] = "65500"
        agreed.observe(.coinbase, at: 4)
        #expect(agreed.tick(at: 5)?.confirmation == .confirmed)
        var second = 4.0
        while second < 2000 {
            rounds.prices = [.binance: alive(65_500, second)]
            guard rounds.tick(at: second)?.confirmation == .unconfirmed else { break }
            second += 10
        }
        #expect(second >= 2000, "the other one was 5 % away when it was silent first")
    }

    @Test func `a market at an impossible price is never learned, however long it stays`() {
        let rounds = Rounds()
        for second in stride(from: 10.0, through: 3000, by: 10) {
            rounds.prices = [.binance: alive(68_900, second), .coinbase: alive(68_000, second)]
            #expect(rounds.tick(at: second)?.quote?.source == "binance")
            rounds.observe(.coinbase, at: second)
        }
        #expect(rounds.belief.bases[.coinbase]?.log == 0)
        #expect(rounds.tracker.state.confirmation == .unconfirmed)
        rounds.prices[.kraken] = "68905"
        #expect(rounds.tick(at: 3010)?.confirmation == .confirmed)
        #expect(rounds.belief.falsetickers == [.coinbase])
    }

    @Test
    func
        `after a restart a dollar market contradicts an impossible USDT price, and confirms one whose basis is unknown`()
    {
        let halved = Rounds([.binance, .coinbase], belief: Belief())
        _ = halved.tracker.restored(cached("60000", age: .seconds(5)), at: World.start)
        halved.prices = [.binance: "30000", .coinbase: "60010"]
        #expect(halved.tick(at: 5)?.text == "60010 coinbase unconfirmed")
        let other = Rounds([.binance, .coinbase], belief: Belief())
        _ = other.tracker.restored(cached("60000", age: .seconds(5)), at: World.start)
        other.prices = [.binance: "60400", .coinbase: "60410"]
        #expect(other.tick(at: 5)?.text == "60400 binance confirmed")
    }

    @Test func `an unconfirmed price is compared with the first other market`() throws {
        let rounds = Rounds(belief: Belief())
        rounds.prices = [.binance: "100000.1"]
        #expect(rounds.tick(at: 0)?.text == "100000.1 binance unconfirmed")
        rounds.prices[.coinbase] = "22000"
        let seen = rounds.observe(.coinbase, at: 1)
        #expect(seen.rejected.isEmpty)
        rounds.prices = [.binance: "100000.2", .coinbase: "22001", .bitstamp: "22011"]
        // The next source agrees with the others.
        let decision = rounds.tick(at: 2)
        #expect(decision?.text == "22001 coinbase confirmed")
        #expect(decision?.rejected.map(\.source) == ["binance"])
    }

    @Test func `a market that drifts away from two others is outvoted, and comes back if it agrees`() {
        let rounds = Rounds([.coinbase, .bitstamp, .kraken], belief: Belief())
        var (drifted, outvoted): (Double, Double?) = (60_000, nil)
        func tick(_ second: Double) {
            rounds.prices = [
                .coinbase: alive(60_000, second), .bitstamp: alive(60_010, second), .kraken: "\(Int(drifted))",
            ]
            _ = rounds.tick(at: second)
            if rounds.lastActions.doubted.map(\.source) == ["kraken"] { outvoted = drifted / 60_000 - 1 }
            rounds.observe(Int(second) % 8 == 0 ? .bitstamp : .kraken, at: second + 0.5)
        }
        for second in stride(from: 0.0, to: 1200, by: 4) where outvoted == nil {
            drifted *= 1.00006
            tick(second)
        }
        #expect((outvoted ?? 1) < 0.0075)
        #expect(rounds.belief.falsetickers == [.kraken])
        drifted = 60_005
        tick(1204)
        tick(1212)
        #expect(rounds.belief.falsetickers.isEmpty)
    }

    @Test func `what was shown since others agreed is in doubt once its market is outvoted, unless it jumped`() {
        func rounds(primary: (Double) -> Double, others back: Double) -> Rounds {
            let rounds = Rounds([.coinbase, .bitstamp, .kraken])
            for second in stride(from: 0.0, through: back, by: 1) {
                rounds.prices = [.coinbase: alive(Int(primary(second)), second)]
                for market in [Market.bitstamp, .kraken] where second == 0 || second == back {
                    rounds.prices[market] = alive(60_000, second)
                }
                _ = rounds.tick(at: second)
            }
            #expect(rounds.belief.falsetickers == [.coinbase])
            return rounds
        }
        // A price that is five seconds old still has a vote.
        let slide = rounds(primary: { 60_000 * (1 + 0.0002 * $0) }, others: 50)
        #expect(slide.lastActions.doubtedSince == Rounds.time(5).boottime)
        let jump = rounds(primary: { $0 < 50 ? 60_000 : 62_000 }, others: 50)
        #expect(jump.lastActions.doubtedSince == nil)
    }

    @Test func `a market that stands still while two others fall is outvoted with that reason`() throws {
        let rounds = Rounds([.binance, .coinbase, .bitstamp])
        var reason: String?
        for second in stride(from: 1.0, through: 120, by: 1) where reason == nil {
            let fallen = 68_900 - 10.0 * max(0, second - 70)
            rounds.prices = [
                .binance: "68900", .coinbase: alive(Int(fallen), second), .bitstamp: alive(Int(fallen), second),
            ]
            let decision = try #require(rounds.tick(at: second))
            reason = decision.rejected.first?.error.description
            if Int(second) % 4 == 0 { rounds.observe(Int(second) % 8 == 0 ? .coinbase : .bitstamp, at: second + 0.5) }
        }
        #expect(reason?.contains("stands still at 68900:") == true)
        #expect(rounds.tracker.state.quote?.source == "coinbase")
    }

    @Test func `in a median a market that stands still supports the others, and opposes none unless all stand still`() {
        let rules = SelectionRules(mode: .median, quorum: 2)
        let rounds = Rounds(Rounds.four, rules: rules, belief: Belief())
        func tick(_ second: Int, kraken: String) -> String {
            rounds.prices = [.binance: "68900", .coinbase: "68900", .bitstamp: "68900", .kraken: kraken]
            return rounds.tick(at: Double(second))?.text ?? "none"
        }
        // One market moves by cents.
        for second in 0..<100 { #expect(tick(second, kraken: "68900.\(second % 7 + 10)") == "68900 median confirmed") }
        // It moves away: the others are too old to contradict it, and it is too lonely to be shown.
        #expect(tick(100, kraken: "72000").hasSuffix("unconfirmed"))
        // Two camps that both stand still remain two camps.
        let gemini = Market("gemini", "BTC/USD")
        let camps = Rounds([.coinbase, .bitstamp, .kraken, gemini], rules: rules, belief: Belief())
        camps.prices = [.coinbase: "68900", .bitstamp: "68900", .kraken: "72000", gemini: "72000"]
        for second in 0..<200 {
            #expect(camps.tick(at: Double(second))?.confirmation == .unconfirmed, "\(second)")
            #expect(camps.tracker.state.standing.warning != nil)
        }
    }

    @Test func `the middle of a median is that of all its members, also of those not requested in this tick`() {
        let rounds = Rounds(Rounds.four, rules: SelectionRules(mode: .median, quorum: 2), belief: Belief())
        rounds.paces = [.kraken: .seconds(2)]
        for second in 0..<6 {
            rounds.prices = [.coinbase: "68900.\(second)", .bitstamp: "69850.\(second)", .kraken: "68910.\(second)"]
            // The limits allow a request of it in every second tick.
            rounds.isUnreachable = second.isMultiple(of: 2) ? [] : [.kraken]
            #expect(rounds.tick(at: Double(second))?.text.hasPrefix("68910") == true)
        }
    }

    @Test func `an agreement decides which side of a split is shown for a minute, then the price shown last does`() {
        func split(away seconds: Int) -> String? {
            let rounds = Rounds([.coinbase, .bitstamp])
            for second in 0..<10 {
                rounds.prices = [
                    .coinbase: alive(68_900, Double(second)), .bitstamp: alive(68_900, Double(second) + 3),
                ]
                rounds.observe(.bitstamp, at: Double(second) + 0.5)
                _ = rounds.tick(at: Double(second) + 1)
            }
            // The second exchange is away, and the first one moves by 3 %.
            for second in 0..<seconds {
                rounds.prices = [.coinbase: alive(68_900 + 2000 * second / (seconds - 1), Double(second))]
                _ = rounds.tick(at: Double(second) + 11)
            }
            rounds.prices[.bitstamp] = "68900"
            rounds.observe(.bitstamp, at: Double(seconds) + 11)
            return rounds.tick(at: Double(seconds) + 11.5)?.quote?.source
        }
        #expect(split(away: 40) == "bitstamp")
        #expect(split(away: 90) == "coinbase")
    }

    @Test func `a reload forgets removed sources, but not the level of the price`() {
        let rounds = Rounds()
        rounds.tracker.changed(
            interval: .seconds(1), rules: SelectionRules(mode: .median),
            addresses: [.kraken: MarketAddress(host: "https://kraken", path: "/t")])
        #expect(rounds.belief.bases.known.keys.sorted { $0.venue < $1.venue } == [.binance])
        #expect(rounds.belief.reference != nil)
        #expect(rounds.tracker.rules.mode == .median)
    }
}
