import Glibc
import Testing

@testable import BTCPriceCore

/// A price of a source, some seconds after the start.
private func quoted(
    _ source: String, _ value: String, at seconds: Double = 0, mark: VenueMark? = nil, tetherRate: String? = nil
) -> FetchedPrice {
    let milliseconds = Int64(seconds * 1000)
    let observed = ObservationTime(
        wall: Timestamp(milliseconds: World.start.wall.milliseconds + milliseconds),
        boottime: World.start.boottime + milliseconds)
    return FetchedPrice(
        quote: PriceQuote(
            value: price(value), currency: "USD", timestamp: observed.wall, source: source,
            market: source == "binance" ? "BTC/USDT" : "BTC/USD"), observed: observed, mark: mark,
        tetherRate: tetherRate.map(price))
}

extension Judgement.Verdict {
    fileprivate var isConfirmed: Bool { if case .believed(.confirmed, _) = self { true } else { false } }
    fileprivate var isContradicted: Bool { if case .contradicted = self { true } else { false } }
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
        #expect(judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "65900", at: 1)]).isConfirmed)
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
        #expect(judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "58950", at: 1)]).isConfirmed)
        guard case .contradicted = judgement.verdict(on: fallen, witnesses: [quoted("coinbase", "62010", at: 1)]) else {
            Issue.record("a witness that stayed did not contradict")
            return
        }
    }

    @Test func `the very first price is unconfirmed by itself, and held back by a contradiction`() {
        let none = Judgement()
        let first = quoted("coinbase", "22000")
        #expect(none.verdict(on: first, witnesses: []) == .believed(.unconfirmed))
        #expect(none.needsWitness(for: first, besides: []))
        #expect(none.verdict(on: first, witnesses: [quoted("bitstamp", "22100")]).isConfirmed)
        #expect(none.verdict(on: first, witnesses: [quoted("bitstamp", "24000")]).isContradicted)
        #expect(none.verdict(on: first, witnesses: [quoted("binance", "22100")]).isConfirmed)
        // A USDT that has left its peg looks like a market that lies, until a USDT/USD market tells which it is.
        let tethered = quoted("binance", "25000")
        #expect(none.verdict(on: tethered, witnesses: [first]).isContradicted)
        #expect(none.needsTetherRate(for: tethered, besides: [first]))
        let kraken = quoted("kraken", "22010", tetherRate: "0.88")
        var told = none
        told.told(kraken)
        #expect(told.verdict(on: tethered, witnesses: [first, kraken]).isConfirmed)
        #expect(!told.needsTetherRate(for: tethered, besides: [first, kraken]))
    }

    @Test func `after a gap of more than a minute the next price is like the first one`() {
        let judgement = Judgement.ofToday
        #expect(judgement.standing(of: quoted("binance", "68900", at: 60)) == .settled)
        let late = quoted("binance", "68900", at: 61)
        #expect(judgement.standing(of: late) == .first)
        #expect(judgement.verdict(on: late, witnesses: []) == .believed(.unconfirmed))
        let wrong = quoted("binance", "57000", at: 10_800)
        // One against one: the one nearer to the last price.
        #expect(
            judgement.verdict(on: wrong, witnesses: [quoted("coinbase", "68910", at: 10_800)])
                == .scattered(nearest: "coinbase"))
        let both = [quoted("coinbase", "68910", at: 10_800), quoted("kraken", "68905", at: 10_800)]
        #expect(judgement.verdict(on: wrong, witnesses: both).isContradicted)
    }

    @Test func `a price that slides needs a witness as soon as it has left the level, whatever the slope`() {
        for step in [0.00005, 0.0005, 0.003, 0.008] {
            var judge = PriceJudge(rules: JudgementRules(), judgement: .ofToday)
            var log = price("68900").logarithm
            var worst = 0.0
            for second in 1...7200 {
                log -= step
                let sliding = quoted("binance", "\(Int(exp(log) * 100))e-2", at: Double(second))
                let others = ["coinbase", "kraken"].map {
                    quoted($0, alive(68_900, Double(second)), at: Double(second))
                }
                let needed = judge.judgement.needsWitness(for: sliding, besides: [])
                let evidence = PriceEvidence(price: sliding, witnesses: needed ? others : [])
                guard case .shown = judge.rule(on: evidence, isTick: true, upTo: 2000) else { break }
                worst = price("68900").logarithm - log
                if second % 12 == 0 { _ = judge.observed(others[second / 12 % 2]) }
                if log < price("48000").logarithm { break }
            }
            #expect(worst < 0.01, "\(worst * 100) % off at \(step * 100) % a second")
        }
    }

    @Test func `a witness that has not moved since it was seen last says nothing`() {
        var judgement = Judgement.ofToday
        judgement.learned(quoted("coinbase", "68905", at: 2))
        judgement.learned(quoted("bitstamp", "68895", at: 2))
        let fallen = quoted("binance", "66800", at: 20)
        let frozen = [quoted("coinbase", "68905", at: 20), quoted("bitstamp", "68895", at: 20)]
        guard case .undecided = judgement.verdict(on: fallen, witnesses: frozen) else {
            Issue.record("two frozen witnesses overruled a true price")
            return
        }
        #expect(judgement.verdict(on: fallen, witnesses: frozen + [quoted("kraken", "66790", at: 20)]).isConfirmed)
    }

    @Test func `two that agree outvote one, three that scatter leave the one in the middle`() {
        let judgement = Judgement.ofToday
        let moved = quoted("binance", "68400", at: 1)
        let others = [quoted("coinbase", "68900", at: 1), quoted("kraken", "68910", at: 1)]
        #expect(judgement.verdict(on: moved, witnesses: others).isContradicted)
        // One against one: the one that has not moved is right.
        #expect(judgement.verdict(on: moved, witnesses: [others[0]]).isContradicted)
        let crash = [quoted("coinbase", "66800", at: 1), quoted("kraken", "65000", at: 1)]
        #expect(
            judgement.verdict(on: quoted("binance", "63000", at: 1), witnesses: crash) == .scattered(nearest: "kraken"))
    }

    @Test func `a jump that stays is believed after three ticks, but not shortly after a contradiction`() {
        var judgement = Judgement.ofToday
        #expect(judgement.persists(quoted("binance", "65500", at: 1)) == 1)
        #expect(judgement.persists(quoted("binance", "65510", at: 2)) == 2)
        // Another jump begins anew.
        #expect(judgement.persists(quoted("binance", "60000", at: 3)) == 1)
        #expect(judgement.persists(quoted("binance", "60010", at: 4)) == 2)
        #expect(judgement.persists(quoted("binance", "60020", at: 5)) == 3)
        judgement.contradicted("binance", by: 2, at: World.start.boottime + 6000)
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
        var second = 4.0
        while case .believed(.unconfirmed, _) = judgement.verdict(
            on: quoted("binance", alive(65_500, second), at: second), witnesses: [])
        {
            judgement.accepted(quoted("binance", alive(65_500, second), at: second), as: .unconfirmed)
            second += 10
        }
        #expect((600...620).contains(second), "for ten minutes, if nobody says otherwise")
    }

    @Test func `a market that stays where none can be is never learned, however long`() {
        var judgement = Judgement.ofToday
        judgement.learned(quoted("kraken", "68910", at: 1))
        for second in stride(from: 10.0, through: 3000, by: 10) {
            judgement.accepted(quoted("binance", alive(68_900, second), at: second), as: .single)
            let isInLine = judgement.learned(quoted("coinbase", alive(68_000, second), at: second))
            #expect(!isInLine)
        }
        #expect(judgement.isDisputed)
        let isInLine = judgement.learned(quoted("kraken", "68905", at: 3000))
        #expect(isInLine && !judgement.isDisputed)
    }

    @Test
    func
        `after a restart a dollar market contradicts a USDT price that can't be, and stands for one of which nothing is known`()
    {
        var judgement = Judgement()
        judgement.restored(quoted("binance", "60000").quote, at: World.start.boottime)
        let halved = quoted("binance", "30000", at: 5)
        #expect(
            judgement.verdict(on: halved, witnesses: [quoted("coinbase", "60010", at: 5)])
                == .scattered(nearest: "coinbase"))
        var other = Judgement()
        other.restored(quoted("coinbase", "60000").quote, at: World.start.boottime)
        let first = quoted("binance", "60400", at: 5)
        #expect(other.verdict(on: first, witnesses: [quoted("coinbase", "60010", at: 5)]).isConfirmed)
    }

    @Test func `a price that nobody has confirmed is held against the first other one that is seen`() {
        var judge = PriceJudge(rules: JudgementRules())
        guard
            case .shown(let price) = judge.rule(
                on: PriceEvidence(price: quoted("binance", "100000.1")), isTick: true, upTo: 2000)
        else {
            Issue.record("the first price was withheld")
            return
        }
        #expect(price.confirmation == .unconfirmed)
        let seen = judge.observed(quoted("coinbase", "22000", at: 1))
        #expect(seen.distrusted.isEmpty && seen.odd?.source == "coinbase")
        let doubted = quoted("binance", "100000.2", at: 2)
        #expect(judge.judgement.needsWitness(for: doubted, besides: []))
        let evidence = PriceEvidence(
            price: doubted, witnesses: [quoted("coinbase", "22001", at: 2), quoted("bitstamp", "22011", at: 2)])
        guard case .withheld(_, let distrusted) = judge.rule(on: evidence, isTick: true, upTo: 2000) else {
            Issue.record("two contradicted it, and it was shown")
            return
        }
        #expect(distrusted.map(\.source) == ["binance"])
        // The next one that is asked has the others' word.
        let next = PriceEvidence(
            price: quoted("coinbase", "22001.5", at: 3), witnesses: [quoted("bitstamp", "22011.5", at: 3)])
        guard case .shown(let shown) = judge.rule(on: next, isTick: true, upTo: 2000) else {
            Issue.record("the true price was withheld")
            return
        }
        #expect(shown.confirmation == .confirmed)
    }

    @Test func `a market that drifts away from two others strays`() {
        var judgement = Judgement()
        judgement.accepted(quoted("coinbase", "60000"), as: .confirmed)
        judgement.learned(quoted("bitstamp", "60010"))
        judgement.learned(quoted("kraken", "59990"))
        #expect(judgement.stray(at: World.start.boottime) == nil)
        var drifted = 60_000.0
        var strayed: Double?
        for minute in 1...20 where strayed == nil {
            drifted *= 1.001
            let second = Double(minute) * 60
            judgement.accepted(quoted("coinbase", alive(60_000, second), at: second), as: .single)
            judgement.learned(quoted("bitstamp", alive(60_010, second), at: second))
            judgement.learned(quoted("kraken", "\(Int(drifted))", at: second))
            if judgement.stray(at: World.start.boottime + Int64(second) * 1000)?.source == "kraken" {
                strayed = drifted / 60_000 - 1
            }
        }
        #expect((strayed ?? 1) < 0.015)
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
                found += judge.observed(quoted(source, "\(Int(path(time)))", at: time)).distrusted
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
    @Test
    func
        `near the peg the rate is the median of what the dollar markets imply, of two measurements the nearer to the peg`()
    {
        var tether = TetherMeasurement()
        tether.measured(-0.005, by: "coinbase", at: 0)
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

    @Test func `bitcoin markets alone never prove that USDT has left its peg`() {
        var tether = TetherMeasurement()
        for second in 0..<600 { tether.measured(-0.3, by: "coinbase", at: Int64(second) * 1000) }
        #expect(tether.rate == nil)
        #expect(tether.logs(at: 600_000) == [0])
        // A USDT/USD market that says the peg holds is believed; so is one that says what they say.
        var holding = tether
        holding.told(price("0.9996"), by: "kraken", at: 600_000)
        #expect(holding.rate?.value == price("0.9996"))
        #expect(holding.rate?.isOffPeg == false)
        tether.told(price("0.7408"), by: "kraken", at: 600_000)
        #expect(tether.rate?.isOffPeg == true)
        #expect(tether.rate?.sources == ["kraken", "coinbase"])
        // One that says what no bitcoin market says is not.
        var lone = TetherMeasurement()
        for second in 0..<10 { lone.measured(0, by: "coinbase", at: Int64(second) * 10_000) }
        lone.told(price("0.9"), by: "kraken", at: 100_000)
        lone.told(price("0.9"), by: "kraken", at: 110_000)
        #expect(lone.rate?.value == 1)
    }

    @Test func `off the peg from 1 percent on, back below 0_8`() {
        var tether = TetherMeasurement()
        func say(_ log: Double, _ at: Int64, _ tether: inout TetherMeasurement) {
            for at in [at, at + 10_000] {
                tether.measured(log, by: "coinbase", at: at)
                tether.told(Price(Int64((exp(log) * 1e8).rounded()), scale: 8), by: "kraken", at: at)
            }
        }
        say(-0.0099, 0, &tether)
        #expect(tether.rate?.isOffPeg == false)
        say(-0.0101, 20_000, &tether)
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
            let rate = "\(Int(value / 68_900 * 10_000))e-4"
            _ = judge.observed(quoted("kraken", "\(Int(value)).5", at: second, tetherRate: rate))
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
        #expect(conversion.sources.first == "kraken")
        // Exactly the product.
        #expect(converted.quote.value == conversion.value * conversion.rate)
        #expect((converted.quote.value - 62_055).magnitude < 20)
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
