import FoundationEssentials
import Testing

@testable import BTCPriceCore

/// A price of a source, some seconds after the start.
private func quoted(
    _ source: String, _ value: String, at seconds: Double = 0, mark: VenueMark? = nil
) -> FetchedPrice {
    let milliseconds = Int64(seconds * 1000)
    let observed = ObservationTime(
        wall: Timestamp(milliseconds: World.start.wall.milliseconds + milliseconds),
        boottime: World.start.boottime + milliseconds)
    return FetchedPrice(
        quote: PriceQuote(
            value: price(value), currency: "USD", timestamp: observed.wall, source: source,
            market: source == "binance" ? "BTC/USDT" : "BTC/USD"), observed: observed, mark: mark)
}

/// A market that trades: another price each time.
private func alive(_ whole: Int, _ second: Double) -> String { "\(whole).\(Int(second) % 89 + 10)" }

@Suite struct JudgementTests {
    @Test(arguments: [(0, 0.006), (1, 0.009), (60, 0.0292), (3600, 0.186), (864_000, 0.25), (-5, 0.006)])
    func `the bound grows with the root of the time`(seconds: Int64, bound: Double) {
        #expect(abs(JudgementBounds.move(after: seconds * 1000) - bound) < 0.0001)
    }

    @Test(arguments: [("68280.10", true), ("68200", false), ("69510", true), ("69600", false)])
    func `a move within the bound is believed, one beyond it is not`(value: String, isBelieved: Bool) {
        let verdict = Judgement.ofToday.verdict(on: quoted("binance", value, at: 1), witnesses: [])
        if isBelieved {
            #expect(verdict == .believed(.single))
        } else {
            guard case .undecided(let reason) = verdict else {
                Issue.record("\(verdict)")
                return
            }
            #expect(reason.contains("no second source"))
        }
    }

    @Test func `a witness that moved as far confirms, one that did not contradicts`() {
        let judgement = Judgement.ofToday
        let fallen = quoted("binance", "65500", at: 1)
        #expect(judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "65900", at: 1)]) == .believed(.confirmed))
        let verdict = judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "68850", at: 1)])
        #expect(
            verdict
                == .contradicted(
                    "65500 BTC/USDT is -4.9 % from the price of 1 s ago, which coinbase (68850) contradicts", by: 1))
        // One that has jumped elsewhere knows no better; the next one does.
        let wild = quoted("coinbase", "90000", at: 1)
        guard case .undecided = judgement.verdict(on: fallen, witnesses: [wild]) else {
            Issue.record("a wild witness decided")
            return
        }
    }

    @Test func `moves are compared, not levels: 10 percent off the peg a fall is confirmed all the same`() {
        var judgement = Judgement.ofToday
        judgement.premiums["coinbase"]?.log = price("62010").logarithm - price("68900").logarithm
        let fallen = quoted("binance", "65500", at: 1)
        #expect(judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "58950", at: 1)]) == .believed(.confirmed))
        guard case .contradicted = judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "62010", at: 1)]) else {
            Issue.record("a witness that stayed did not contradict")
            return
        }
    }

    @Test func `the very first price needs a second source, in its own currency near it, in the other of its order`() {
        let none = Judgement()
        let first = quoted("coinbase", "22000")
        guard case .undecided = none.verdict(on: first, witnesses: []) else {
            Issue.record("believed by itself")
            return
        }
        #expect(none.verdict(on: first, witnesses: [quoted("bitstamp", "22100")]) == .believed(.confirmed))
        guard case .contradicted = none.verdict(on: first, witnesses: [quoted("bitstamp", "24000")]) else {
            Issue.record("9 % off and not contradicted")
            return
        }
        #expect(none.verdict(on: first, witnesses: [quoted("binance", "25000")]) == .believed(.confirmed))
        guard case .contradicted = none.verdict(on: first, witnesses: [quoted("binance", "100000")]) else {
            Issue.record("a test network was taken for a market")
            return
        }
    }

    @Test func `a jump that stays is believed after three ticks, but not shortly after a contradiction`() {
        var judgement = Judgement.ofToday
        #expect(judgement.persists(quoted("binance", "65500", at: 1)) == 1)
        #expect(judgement.persists(quoted("binance", "65510", at: 2)) == 2)
        // Another jump begins anew.
        #expect(judgement.persists(quoted("binance", "60000", at: 3)) == 1)
        #expect(judgement.persists(quoted("binance", "60010", at: 4)) == 2)
        #expect(judgement.persists(quoted("binance", "60020", at: 5)) == 3)
        judgement.contradicted("binance", at: World.start.boottime + 6000)
        #expect(judgement.persists(quoted("binance", "60020", at: 7)) == nil)
        #expect(judgement.persists(quoted("binance", "60020", at: 67)) == 1)
    }

    @Test func `what was unconfirmed stays so until another source agrees`() {
        var judgement = Judgement.ofToday
        judgement.accepted(quoted("binance", "65500", at: 3), as: .unconfirmed)
        #expect(judgement.verdict(on: quoted("binance", "65520", at: 4), witnesses: []) == .believed(.unconfirmed))
        var agreed = judgement
        agreed.learned(quoted("coinbase", "65500", at: 4))
        #expect(agreed.verdict(on: quoted("binance", "65520", at: 5), witnesses: []) == .believed(.single))
        #expect(judgement.verdict(on: quoted("binance", "65520", at: 700), witnesses: []) == .believed(.single))
    }

    @Test func `a source that stays at half its price is not learned for a quarter of an hour`() {
        var judgement = Judgement.ofToday
        judgement.contradicted("coinbase", at: World.start.boottime)
        for second in stride(from: 10.0, through: 890, by: 10) {
            judgement.accepted(quoted("binance", alive(68_900, second), at: second), as: .single)
            let isInLine = judgement.learned(quoted("coinbase", alive(67_000, second), at: second))
            #expect(!isInLine)
        }
        judgement.accepted(quoted("binance", "68900.5", at: 920), as: .single)
        let isInLine = judgement.learned(quoted("coinbase", "67000.5", at: 920))
        #expect(isInLine)
        // No dollar market stands at half of the others, however long.
        judgement.contradicted("bitstamp", at: World.start.boottime)
        for second in stride(from: 1000.0, through: 3000, by: 10) {
            judgement.accepted(quoted("coinbase", alive(67_000, second), at: second), as: .single)
            let isInLine = judgement.learned(quoted("bitstamp", alive(33_500, second), at: second))
            #expect(!isInLine)
        }
    }

    @Test
    func
        `after a restart a dollar market contradicts a USDT price that can't be, and stands for one of which nothing is known`()
    {
        var judgement = Judgement()
        judgement.restored(quoted("binance", "60000").quote, at: World.start.boottime)
        let halved = quoted("binance", "30000", at: 5)
        guard case .contradicted = judgement.verdict(on: halved, witnesses: [quoted("coinbase", "60010", at: 5)]) else {
            Issue.record("half the price was not contradicted")
            return
        }
        var other = Judgement()
        other.restored(quoted("coinbase", "60000").quote, at: World.start.boottime)
        let first = quoted("binance", "60600", at: 5)
        #expect(other.verdict(on: first, witnesses: [quoted("coinbase", "60010", at: 5)]) == .believed(.confirmed))
    }

    @Test func `a price that nobody has confirmed is doubted by two that stand elsewhere`() {
        var judge = PriceJudge(rules: JudgementRules())
        var shown = false
        for second in 0..<3 {
            let evidence = PriceEvidence(price: quoted("binance", "100000.\(second + 10)", at: Double(second)))
            if case .shown(let price) = judge.rule(on: evidence, isTick: true, upTo: 2000) {
                shown = price.confirmation == .unconfirmed
            }
        }
        #expect(shown)
        #expect(judge.observed(quoted("coinbase", "22000", at: 3)).isEmpty)
        let found = judge.observed(quoted("bitstamp", "22010", at: 4))
        #expect(found.map(\.source) == ["binance"])
        // The next one that is asked has the others' word.
        let next = PriceEvidence(
            price: quoted("coinbase", "22001", at: 5), witnesses: [quoted("bitstamp", "22011", at: 5)])
        guard case .shown(let price) = judge.rule(on: next, isTick: true, upTo: 2000) else {
            Issue.record("the true price was withheld")
            return
        }
        #expect(price.confirmation == .confirmed)
    }

    @Test func `a dollar market that drifts away from two others strays`() {
        var judgement = Judgement()
        judgement.accepted(quoted("coinbase", "60000"), as: .confirmed)
        judgement.learned(quoted("bitstamp", "60010"))
        judgement.learned(quoted("kraken", "59990"))
        #expect(judgement.stray(at: World.start.boottime) == nil)
        var drifted = 60_000.0
        for minute in 1...10 {
            drifted *= 1.004
            let second = Double(minute) * 60
            judgement.accepted(quoted("coinbase", alive(60_000, second), at: second), as: .single)
            judgement.learned(quoted("bitstamp", alive(60_010, second), at: second))
            judgement.learned(quoted("kraken", "\(Int(drifted))", at: second))
        }
        #expect(judgement.stray(at: World.start.boottime + 600_000)?.source == "kraken")
    }
}

@Suite struct StandstillTests {
    private func judge(_ moves: [String: (Double) -> Double], seconds: Int) -> (PriceJudge, [SourceFailure]) {
        var judge = PriceJudge(rules: JudgementRules(), judgement: .ofToday)
        var found: [SourceFailure] = []
        for second in 1...seconds {
            let time = Double(second)
            let evidence = PriceEvidence(price: quoted("binance", "68900", at: time))
            _ = judge.rule(on: evidence, isTick: true, upTo: 2000)
            guard second % 12 == 0 else { continue }
            for (source, path) in moves.sorted(by: { $0.key < $1.key }) {
                found += judge.observed(quoted(source, "\(Int(path(time)))", at: time))
            }
        }
        return (judge, found)
    }

    @Test func `a source that stands still while two others fall is found, and passed over until it moves`() throws {
        let falling = { (second: Double) in 68_900 - 5 * second }
        let (judge, found) = judge(["coinbase": falling, "bitstamp": falling], seconds: 120)
        let failure = try #require(found.first)
        #expect(failure.source == "binance")
        #expect(failure.error.category == .staleData)
        #expect("\(failure.error)".contains("stands still at 68900"))
        #expect(judge.frozen == ["binance": price("68900")])
        var moved = judge
        _ = moved.observed(quoted("binance", "68310", at: 121))
        #expect(moved.frozen.isEmpty)
    }

    @Test func `where all stand still, or two move against each other, nobody is found`() {
        let still = { (_: Double) in 68_900.0 }
        #expect(judge(["coinbase": still, "bitstamp": still], seconds: 300).1.isEmpty)
        let up = { (second: Double) in 68_900 + 2 * second }
        let down = { (second: Double) in 68_900 - 2 * second }
        #expect(judge(["coinbase": up, "bitstamp": down], seconds: 300).1.isEmpty)
    }

    @Test func `newer trades at the same price are no standstill`() {
        var standstill = Standstill()
        for second in 0..<60 {
            standstill.saw(quoted("coinbase", "68900", at: Double(second), mark: VenueMark(trade: Int64(second))))
        }
        #expect(!standstill.suspects("coinbase"))
        for second in 60..<95 {
            standstill.saw(quoted("coinbase", "68900", at: Double(second), mark: VenueMark(trade: 59)))
        }
        #expect(standstill.suspects("coinbase"))
    }

    @Test func `two answers are not a standstill because nobody asked in between`() {
        var standstill = Standstill()
        standstill.saw(quoted("binance", "68900", at: 0))
        #expect(standstill.unchanged("binance") == 0)
        standstill.saw(quoted("binance", "68901", at: 60))
        #expect(!standstill.suspects("binance"))
    }

    @Test func `a reload forgets the sources that are gone, and not where the price stands`() {
        var judge = PriceJudge(rules: JudgementRules(), judgement: .ofToday)
        judge.changed(rules: JudgementRules(mode: .median), sources: ["kraken"])
        #expect(judge.judgement.premiums.keys.sorted() == ["binance"])
        #expect(judge.judgement.index != nil)
        #expect(judge.rules.mode == .median)
    }

    @Test func `who comes back after long with the answer of then has to give another one first`() {
        var judge = PriceJudge(rules: JudgementRules(), judgement: .ofToday)
        _ = judge.observed(quoted("binance", "68900", at: 0))
        _ = judge.rule(on: PriceEvidence(price: quoted("coinbase", "68900", at: 900)), isTick: true, upTo: 2000)
        _ = judge.observed(quoted("binance", "68910", at: 900))
        #expect(judge.frozen == ["binance": price("68910")])
    }
}

@Suite struct TetherTests {
    @Test func `the rate is the median of what the dollar markets say, and of two measurements the nearer to the peg`()
    {
        var tether = TetherMeasurement()
        tether.measured(-0.05, by: "coinbase", at: 0)
        tether.measured(-0.001, by: "bitstamp", at: 1000)
        tether.measured(-0.002, by: "kraken", at: 2000)
        #expect(tether.rate?.value == price("0.998002"))
        #expect(tether.rate?.sources == ["bitstamp", "coinbase", "kraken"])
        #expect(tether.rate?.isOffPeg == false)
        // One odd one of each changes nothing.
        for (index, source) in ["coinbase", "bitstamp", "kraken"].enumerated() {
            tether.measured(0, by: source, at: 30_000 + Int64(index))
            tether.measured(-0.2, by: source, at: 60_000 + Int64(index))
        }
        #expect(tether.rate?.value == 1)
    }

    @Test func `measured every second, what was measured before a gap does not stay for ever`() {
        var tether = TetherMeasurement()
        for second in 0..<5 { tether.measured(0, by: "coinbase", at: Int64(second) * 1000) }
        for second in 60..<80 { tether.measured(-0.05, by: "coinbase", at: Int64(second) * 1000) }
        #expect(tether.rate?.isOffPeg == true)
        #expect(tether.rate?.measuredBoottime == 79_000)
    }

    @Test func `off the peg from 1 percent on, back below 0_8`() {
        var tether = TetherMeasurement()
        func say(_ log: Double, _ at: Int64, _ tether: inout TetherMeasurement) {
            tether.measured(log, by: "coinbase", at: at)
            tether.measured(log, by: "coinbase", at: at + 10_000)
        }
        say(-0.0099, 0, &tether)
        #expect(tether.rate?.isOffPeg == false)
        say(-0.0101, 20_000, &tether)
        say(-0.0101, 40_000, &tether)
        #expect(tether.rate?.isOffPeg == true)
        say(-0.0085, 60_000, &tether)
        #expect(tether.rate?.isOffPeg == true)
        say(-0.0079, 80_000, &tether)
        #expect(tether.rate?.isOffPeg == false)
    }

    /// A judge that has measured USDT at 0.9 dollars.
    private func offPeg(_ policy: TetherPolicy) -> PriceJudge {
        var judge = PriceJudge(rules: JudgementRules(tether: policy), judgement: .ofToday)
        var value = 68_900.0
        for second in stride(from: 5.0, through: 600, by: 5) {
            value = max(62_010, value * 0.996)
            _ = judge.rule(
                on: PriceEvidence(price: quoted("binance", "68900.\(Int(second) % 90 + 10)", at: second)), isTick: true,
                upTo: 2000)
            _ = judge.observed(quoted("coinbase", "\(Int(value))", at: second))
        }
        return judge
    }

    @Test func `warned, converted or refused`() throws {
        let next = PriceEvidence(price: quoted("binance", "68950", at: 601))
        var warning = offPeg(.warn)
        guard case .shown(let shown) = warning.rule(on: next, isTick: true, upTo: 2000) else {
            Issue.record("not shown")
            return
        }
        #expect(shown.quote.value == 68_950)
        #expect(
            warning.warning(for: shown.quote, at: World.start.boottime + 601_000)?.contains("a price in USDT") == true)
        var converting = offPeg(.convert)
        guard case .shown(let converted) = converting.rule(on: next, isTick: true, upTo: 2000) else {
            Issue.record("not converted")
            return
        }
        let conversion = try #require(converted.conversion)
        #expect(conversion.value == 68_950)
        #expect(conversion.sources == ["coinbase"])
        // Exactly the product.
        #expect(converted.quote.value == conversion.value * conversion.rate)
        #expect(abs(converted.quote.value - 62_055) < 20)
        var refusing = offPeg(.refuse)
        #expect(refusing.refusesTether(at: World.start.boottime + 601_000))
        guard case .withheld(_, let distrusted) = refusing.rule(on: next, isTick: true, upTo: 2000) else {
            Issue.record("not refused")
            return
        }
        // It is not the source's fault.
        #expect(distrusted.isEmpty)
    }
}

@Suite struct ConsensusTests {
    @Test func `the median of those that agree, the others named`() {
        let (value, consensus) = Consensus.median(of: [
            ("a", price("100")), ("b", price("101")), ("c", price("100.5")), ("d", price("90")),
        ])
        #expect(value == price("100.5"))
        #expect(consensus == Consensus(sources: ["a", "b", "c"], outliers: ["d"], spread: 1))
        let (even, _) = Consensus.median(of: [("a", price("100.01")), ("b", price("100.02"))])
        #expect(even == price("100.015"))
    }

    @Test(arguments: [
        ("1.123456785", "1.12345678"), ("1.123456775", "1.12345678"), ("1.1234567851", "1.12345679"),
        ("68812.48", "68812.48"), ("99999999.999999999", "100000000"),
        ("0.3333333333333333333333333333333333333", "0.33333333"), ("-1.123456775", "-1.12345678"),
    ])
    func `what is calculated has eight digits after the point at most`(value: String, rounded: String) {
        #expect(price(value).rounded(toPlaces: 8) == price(rounded))
    }

    @Test func `earlier answers support, and are not shown`() {
        let (value, consensus) = Consensus.median(
            of: [("a", price("101")), ("b", price("100")), ("c", price("100"))], isEarlier: { $0 != "a" })
        #expect(value == 101)
        #expect(consensus.sources == ["a", "b", "c"])
    }

    @Test func `a median of three begins although one of them is in USDT and nothing is known yet`() {
        var judge = PriceJudge(rules: JudgementRules(mode: .median, quorum: 3))
        let first = PriceEvidence(
            price: quoted("binance", "68950"), witnesses: [quoted("coinbase", "68900"), quoted("kraken", "68910")])
        guard case .shown(let shown) = judge.rule(on: first, isTick: true, upTo: 2000) else {
            Issue.record("withheld")
            return
        }
        #expect(shown.consensus?.sources == ["binance", "coinbase", "kraken"])
        // With a quorum of one, the one in the middle is shown and no outlier.
        var lone = PriceJudge(rules: JudgementRules(mode: .median, quorum: 1), judgement: .ofToday)
        let apart = PriceEvidence(
            price: quoted("coinbase", "66000", at: 1),
            witnesses: [quoted("bitstamp", "72000", at: 1), quoted("kraken", "68900", at: 1)])
        guard case .shown(let middle) = lone.rule(on: apart, isTick: true, upTo: 2000) else {
            Issue.record("the one in the middle was withheld")
            return
        }
        #expect(middle.quote.source == "kraken")
    }

    @Test func `fewer than the quorum are no price, however sure each is`() {
        var judge = PriceJudge(rules: JudgementRules(mode: .median, quorum: 3), judgement: .ofToday)
        let two = PriceEvidence(
            price: quoted("coinbase", "68900", at: 1), witnesses: [quoted("bitstamp", "68910", at: 1)])
        guard case .withheld(let reason, _) = judge.rule(on: two, isTick: true, upTo: 2000) else {
            Issue.record("two were enough for three")
            return
        }
        #expect("\(reason.error)".contains("2 of the 3"))
        let three = PriceEvidence(
            price: quoted("coinbase", "68900", at: 2),
            witnesses: [quoted("bitstamp", "68910", at: 2), quoted("kraken", "68880", at: 2)])
        guard case .shown(let shown) = judge.rule(on: three, isTick: true, upTo: 2000) else {
            Issue.record("three were not enough")
            return
        }
        #expect(shown.quote.value == 68_900)
        #expect(shown.quote.source == "median")
        #expect(shown.confirmation == .confirmed)
        #expect(shown.consensus?.spread == 30)
    }
}
