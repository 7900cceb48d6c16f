import TestSupport
import Testing

@testable import BTCPriceCore

/// The whole judgement, for prices that no market has.
@Suite struct BallotTests {
    @Test func `random prices of random markets are decided without a trap`() {
        var generator = SeededGenerator(seed: 3)
        let values = ["1", "100000000", "68900", "68901", "70000", "50000", "68905.12345678", "2"]
        for mode in PriceMode.allCases {
            for peg in PegPolicy.allCases {
                let rounds = Rounds(rules: SelectionRules(mode: mode, quorum: 2, peg: peg))
                for second in 1...2000 {
                    for market in Rounds.four {
                        rounds.prices[market] =
                            Int.random(in: 0..<4, using: &generator) == 0
                            ? nil : values.randomElement(using: &generator)
                    }
                    rounds.peg = ["0.5", "1", "1.9", nil].randomElement(using: &generator) ?? nil
                    rounds.halfSpreads = [.binance: Double.random(in: 0...0.02, using: &generator)]
                    _ = rounds.tick(at: Double(second) + (Bool.random(using: &generator) ? 0 : 100))
                    if let market = Rounds.four.randomElement(using: &generator) {
                        rounds.observe(market, at: Double(second) + 0.5)
                    }
                    let state = rounds.tracker.state
                    // A price that is contradicted says so.
                    #expect(rounds.belief.split == nil || state.freshness != .fresh || state.standing.warning != nil)
                    _ = rounds.tracker.claims
                }
            }
        }
    }

    @Test func `an exchange that has answered with an older trade contradicts, too`() {
        let rounds = Rounds([.coinbase, .bitstamp])
        for second in 0..<20 {
            rounds.prices = [.coinbase: "\(68900 + second)", .bitstamp: "68900"]
            rounds.observe(.bitstamp, at: Double(second) + 0.5)
            _ = rounds.tick(at: Double(second + 1))
        }
        for second in 21..<25 {
            rounds.prices[.coinbase] = "\(68900 - (second - 20) * 150)"
            rounds.observe(.bitstamp, at: Double(second) - 0.5)
            _ = rounds.tick(at: Double(second))
        }
        #expect(rounds.tracker.state.confirmation == .unconfirmed)
        #expect(rounds.tracker.state.standing.warning?.contains("contradicts") == true)
    }

    @Test func `unconfirmed publishers make no confirmed median`() throws {
        let peers = ["a", "b", "c"].map { Market($0, "BTC/USD") }
        let rounds = Rounds(peers, rules: SelectionRules(mode: .median, quorum: 2))
        for (place, peer) in peers.enumerated() {
            rounds.prices[peer] = "6890\(place)"
            rounds.pushes[peer] = (0.9, PriceOrigin(source: "x\(place)", pair: "BTC/USD", instance: peer.venue))
        }
        #expect(rounds.tick(at: 1)?.confirmation == .confirmed)
        rounds.confirmation = .unconfirmed
        for peer in peers { rounds.pushes[peer]?.at = 1.9 }
        #expect(rounds.tick(at: 2)?.confirmation == .unconfirmed)
    }

    /// A market that is alone in its currency, from its first price on, at some distance from what is implied.
    @Test(arguments: [
        ("CHF", 1.02, true), ("CHF", 1.03, false), ("CHF", 0.92, false), ("CHF", 1.6, false), ("KRW", 1.05, true),
        ("KRW", 1.4, false), ("NGN", 1.6, true), ("CAD", 0.97, false), ("INR", 1.05, true),
    ])
    func `a first price within what people pay is sure within two minutes, and never beyond`(
        code: String, factor: Double, isSure: Bool
    ) throws {
        let currency = try #require(Currency(rawValue: code))
        let market = Market("kraken", currency.pair)
        let rounds = Rounds([market], currency: currency, belief: Belief())
        var lastSure: [Int] = []
        for second in 0..<600 {
            let wall = Rounds.time(Double(second)).wall
            let dollars = OtherCurrency(
                currency: .usd, log: price("68900").logarithm, at: Rounds.time(Double(second)).boottime,
                exchange: "binance")
            rounds.expected = ExpectedPrice(
                dollars, ReferenceRate(value: 1, source: "ecb", date: wall, isConfirmed: true), in: currency,
                at: wall)
            rounds.prices = [market: "\(Int(68_900 * factor)).\(second % 90 + 10)"]
            let confirmation = try #require(rounds.tick(at: Double(second))).confirmation
            if confirmation != .unconfirmed { lastSure.append(second) }
        }
        #expect(isSure ? lastSure.first ?? 600 < 120 && lastSure.count > 470 : lastSure.isEmpty)
        if !isSure { #expect(rounds.tracker.state.standing.warning?.contains("and the rate of ecb") == true) }
    }

    @Test func `a peer that contradicts the exchange that it names has no vote, and its reader is told`() throws {
        let alpha = Market("alpha", "BTC/USD")
        let rounds = Rounds([alpha, .coinbase])
        rounds.prices = [alpha: "70900", .coinbase: "68900"]
        for second in 1...90 {
            rounds.pushes[alpha] = (
                Double(second) - 0.1, PriceOrigin(source: "coinbase", pair: "BTC/USD", instance: "a")
            )
            let decision = try #require(rounds.tick(at: Double(second)))
            #expect(decision.text == "68900 coinbase unconfirmed" && decision.verdicts[alpha] == .disagrees)
        }
        #expect(
            rounds.tracker.state.standing.warning == "alpha ($70,900.00) contradicts coinbase ($68,900.00)")
        // Nor does it support a liar.
        let liars = Rounds([.binance, alpha, .coinbase, .kraken])
        liars.prices = [.binance: "70900", alpha: "70900", .coinbase: "68900", .kraken: "68900"]
        liars.pushes[alpha] = (0.9, PriceOrigin(source: "coinbase", pair: "BTC/USD", instance: "a"))
        for market in [.kraken, .coinbase] as [Market] { liars.observe(market, at: 1) }
        #expect(liars.tick(at: 1)?.text == "68900 coinbase confirmed")
    }

    @Test func `a price that the others have been silent about for a minute says so, if there are others`() {
        for markets in [[Market.binance, .coinbase], [.binance]] {
            let rounds = Rounds(markets)
            rounds.prices = [.binance: "68900", .coinbase: "68900"]
            _ = rounds.tick(at: 0)
            if markets.count > 1 { rounds.observe(.coinbase, at: 0.5) }
            for second in 1...70 {
                rounds.prices = [.binance: "68900.\(second)"]
                let confirmation = rounds.tick(at: Double(second))?.confirmation
                #expect(confirmation == (markets.count == 1 || second > 60 ? .single : .confirmed))
                let isAlone = markets.count > 1 && confirmation == .single
                #expect(rounds.tracker.state.standing.warning == (isAlone ? "only binance gives a price" : nil))
            }
            // Then none does.
            rounds.prices = [:]
            for second in 71...75 { _ = rounds.tick(at: Double(second)) }
            #expect(rounds.tracker.state.freshness == .stale && rounds.tracker.state.standing.warning == nil)
        }
    }

    @Test func `while others are silent, a price far from where they agreed is in doubt until one speaks`() throws {
        let rounds = Rounds([.binance, .coinbase])
        rounds.prices = [.binance: "68900", .coinbase: "68900"]
        rounds.observe(.coinbase, at: 0.5)
        #expect(rounds.tick(at: 1)?.confirmation == .confirmed)
        for second in 2...120 {
            rounds.prices = [.binance: "\(68_900 + min(second, 6) * 500).\(second % 9)"]
            let confirmation = rounds.tick(at: Double(second))?.confirmation
            #expect(confirmation == .unconfirmed || second < 4)
        }
        #expect(
            rounds.tracker.state.standing.warning
                == "binance ($71,900.30) is far from $68,900.00, where other exchanges agreed last")
        rounds.prices[.coinbase] = "71900"
        rounds.observe(.coinbase, at: 120.5)
        #expect(rounds.tick(at: 121)?.confirmation == .confirmed)
    }

    @Test func `a lone market against another currency and a rate is unconfirmed, and never confirmed by them`() throws
    {
        let chf = Market("kraken", "BTC/CHF")
        let rounds = Rounds([chf], currency: .chf, belief: Belief())
        func tick(
            _ second: Double, _ value: Int, exchange: String? = "binance", days: Int64 = 0, isUnconfirmed: Bool = false
        ) throws -> String {
            rounds.prices = [chf: "\(value).\(Int(second) % 90 + 10)"]
            var dollars = OtherCurrency(
                currency: .usd, log: price("68900").logarithm, at: Rounds.time(second).boottime, exchange: exchange)
            dollars.isUnconfirmed = isUnconfirmed
            let wall = Rounds.time(second).wall
            rounds.expected = ExpectedPrice(
                dollars,
                ReferenceRate(
                    value: price("0.88"), source: "ecb",
                    date: Timestamp(milliseconds: wall.milliseconds - days * 86_400_000), isConfirmed: true),
                in: .chf, at: wall)
            return try #require(rounds.tick(at: second)).confirmation.rawValue
        }
        for second in 0..<120 { _ = try tick(Double(second), 60_632) }
        #expect(try tick(120, 60_632) == "single")
        for second in 121..<130 { _ = try tick(Double(second), 60_632 + (second - 120) * 400) }
        #expect(try tick(130, 64_600) == "unconfirmed")
        #expect(
            rounds.tracker.state.standing.warning
                == "BTC/USD and the rate of ecb (CHF 60,669.76) contradict kraken (CHF 64,600.50)")
        // It has no voice if it comes from the same exchange, is in doubt itself, or is old; the doubt ends after a minute.
        func last(
            _ seconds: Range<Int>, exchange: String? = "binance", days: Int64 = 0, isUnconfirmed: Bool = false
        ) throws -> [String] {
            try seconds.map {
                try tick(Double($0), 64_600, exchange: exchange, days: days, isUnconfirmed: isUnconfirmed)
            }.suffix(2)
        }
        #expect(try last(131..<200, exchange: "kraken") == ["single", "single"])
        #expect(try last(200..<205) == ["unconfirmed", "unconfirmed"])
        #expect(try last(205..<270, isUnconfirmed: true) == ["single", "single"])
        #expect(try last(270..<275) == ["unconfirmed", "unconfirmed"])
        #expect(try last(275..<340, days: 4) == ["unconfirmed", "unconfirmed"])
        #expect(try last(340..<405, days: 9) == ["single", "single"])
    }
}
