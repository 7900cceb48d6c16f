import Testing

@testable import BTCPriceCore

/// One vote per exchange, for any number of sources of its price; and the shown price if two sides have the same number of votes.
@Suite struct OriginTests {
    private static let cryptocompare = Market("cryptocompare", "BTC/USD")

    private func rounds(_ markets: [Market], rules: SelectionRules = SelectionRules(), seconds: Int = 10) -> Rounds {
        let rounds = Rounds(markets, rules: rules)
        rounds.venues[Self.cryptocompare] = Venue("cryptocompare", upstream: "coinbase")
        for second in 0..<seconds {
            for market in markets { rounds.prices[market] = "6800\(second % 3)" }
            _ = rounds.tick(at: Double(second))
            for market in markets.dropFirst() { rounds.observe(market, at: Double(second) + 0.5) }
        }
        return rounds
    }

    @Test func `Coinbase and sources of its price don't outvote Bitstamp`() throws {
        let rounds = rounds([.bitstamp, .coinbase, Self.cryptocompare])
        for second in 10..<40 {
            rounds.prices = [.bitstamp: "6800\(second % 3)", .coinbase: "70041", Self.cryptocompare: "70041"]
            let decision = try #require(rounds.tick(at: Double(second)))
            // At first, Coinbase's price of a moment ago agrees.
            #expect(decision.quote?.source == "bitstamp" && (decision.confirmation == .unconfirmed || second == 10))
            rounds.observe(.coinbase, at: Double(second) + 0.3)
            rounds.observe(Self.cryptocompare, at: Double(second) + 0.5)
        }
    }

    @Test func `Coinbase is not confirmed by a source of its own price`() throws {
        let rounds = rounds([.coinbase, Self.cryptocompare, .bitstamp])
        rounds.prices = [.coinbase: "70041", Self.cryptocompare: "70041", .bitstamp: "68001"]
        let decision = try #require(rounds.tick(at: 10))
        #expect(decision.quote?.source == "bitstamp" && decision.confirmation == .unconfirmed)
    }

    @Test func `a median counts an exchange once, and each peer`() throws {
        let rules = SelectionRules(mode: .median, quorum: 2)
        let exchanges = rounds([.coinbase, Self.cryptocompare, .bitstamp], rules: rules)
        exchanges.prices = [.coinbase: "68010", Self.cryptocompare: "68010", .bitstamp: "68000"]
        #expect(exchanges.tick(at: 10)?.quote?.value == price("68005"))
        exchanges.prices = [.coinbase: "68010", Self.cryptocompare: "68010"]
        #expect(exchanges.tick(at: 19)?.quote == nil)
        let peers = [Market("alpha", "BTC/USD"), Market("beta", "BTC/USD")]
        let two = Rounds(peers, rules: rules)
        for (peer, instance) in zip(peers, ["one", "two"]) {
            two.prices[peer] = "68010"
            two.pushes[peer] = (at: 1, origin: PriceOrigin(source: "binance", pair: "BTC/USDT", instance: instance))
        }
        #expect(two.tick(at: 1)?.confirmation == .confirmed)
        two.pushes[peers[1]]?.origin = PriceOrigin(source: "binance", pair: "BTC/USDT", instance: "one")
        #expect(two.tick(at: 1.5)?.quote == nil)
    }

    @Test func `of two prices left in a median, the one that did not move is shown, not their mean`() throws {
        let rounds = rounds([.binance, .coinbase, .kraken], rules: SelectionRules(mode: .median, quorum: 2))
        for second in 10..<20 {
            rounds.prices = [.binance: "69973", .coinbase: "6800\(second % 3)"]
            let decision = try #require(rounds.tick(at: Double(second)))
            #expect(decision.text == "6800\(second % 3) coinbase unconfirmed")
            // Kraken's price of a moment ago agrees with Coinbase's.
            guard second > 15 else { continue }
            #expect(
                decision.split?.text(.usd) == "binance ($69,973.00) contradicts coinbase ($68,00\(second % 3).00)")
            let reach = try #require(decision.uncertainty).plusMinus
            #expect(reach >= price("1960"))
        }
        rounds.prices = [.binance: "68003", .coinbase: "68004"]
        #expect(rounds.tick(at: 20)?.confirmation == .confirmed)
    }

    @Test(arguments: [[Market.binance, .coinbase], [.coinbase, .kraken], [.bitstamp, .kraken]])
    func `two against two is reported, and the price does not jump`(liars: [Market]) throws {
        let rounds = rounds(Rounds.four)
        let honest = Rounds.four.filter { !liars.contains($0) }
        var sides: [Bool] = []
        for second in 10..<40 {
            for market in honest { rounds.prices[market] = "6800\(second % 3)" }
            for market in liars { rounds.prices[market] = "7004\(second % 3)" }
            // Kraken's limit prevents a request at every second tick.
            rounds.isUnreachable = second % 2 == 0 ? [.kraken] : []
            // One of them does not respond now and then, which does not outvote the other.
            if second % 7 == 5 { rounds.prices[liars[1]] = nil }
            let decision = try #require(rounds.tick(at: Double(second)))
            #expect(second < 14 || decision.rejected.isEmpty)
            rounds.observe(Rounds.four[1 + second % 3], at: Double(second) + 0.5)
            guard second > 13 else { continue }
            #expect(decision.confirmation == .unconfirmed, "second \(second): \(decision.text), \(rounds.requested)")
            #expect(rounds.tracker.state.standing.warning?.contains(" contradict") == true)
            #expect(rounds.tracker.state.standing.isInDoubt)
            let reach = try #require(decision.uncertainty).plusMinus
            #expect(reach >= price("2000"))
            sides.append(honest.contains { $0.venue == decision.quote?.source })
        }
        #expect(sides.allSatisfy { $0 == true })
        rounds.isUnreachable = []
        // The shown side does not respond, and the other one does not replace it.
        for market in honest { rounds.prices[market] = nil }
        let alone = try #require(rounds.tick(at: 40))
        #expect(alone.quote == nil && alone.withheld != nil)
        for market in honest { rounds.prices[market] = "68001" }
        // One of them changes sides: now it is three to one.
        rounds.prices[liars[1]] = "68001"
        let last = try #require(rounds.tick(at: 41))
        #expect(last.confirmation == .confirmed && last.split == nil)
        #expect(rounds.tracker.state.standing.warning == nil)
        #expect(!rounds.tracker.state.standing.isInDoubt)
    }

    @Test func `of three prices apart in a crash, the one that stands still does not return at every second tick`()
        throws
    {
        let rounds = rounds([.coinbase, .bitstamp, .kraken])
        var far = 0
        for second in 10..<60 {
            // Coinbase has an old price with a new time, and Kraken's limit prevents a request at every second tick.
            let fair = 68_000 - 40 * (second - 9)
            rounds.prices = [.coinbase: "6800\(second % 3)", .bitstamp: "\(fair - 500)", .kraken: "\(fair)"]
            rounds.isUnreachable = second % 2 == 0 ? [.kraken] : []
            let decision = try #require(rounds.tick(at: Double(second)))
            rounds.observe([.bitstamp, .kraken][second / 2 % 2], at: Double(second) + 0.5)
            if second > 30, decision.quote?.source == "coinbase" { far += 1 }
        }
        #expect(far == 0)
    }

    @Test(arguments: [false, true])
    func `a false price is not shown because another market had a false price a moment ago`(isHeard: Bool) throws {
        let rounds = rounds(Rounds.four)
        rounds.prices = [.coinbase: "68801", .bitstamp: "68802", .kraken: "68803"]
        #expect(rounds.tick(at: 10)?.quote?.source == "coinbase")
        rounds.prices[.kraken] = "8200"
        if isHeard { rounds.observe(.kraken, at: 10.5) }
        // Besides it, only Bitstamp can be requested. Its price agrees with the shown one.
        rounds.prices = [.binance: "34329", .bitstamp: "68810", .kraken: "8200"]
        rounds.isUnreachable = [.coinbase, .kraken]
        let decision = try #require(rounds.tick(at: 11))
        #expect(decision.quote?.source != "binance", "\(decision.text)")
    }

    @Test func `two don't outvote one price whose witness is only held back by its limit`() throws {
        let rounds = rounds(Rounds.four)
        // Binance is not requested.
        rounds.prices[.binance] = nil
        for second in 10..<14 {
            for market in [Market.coinbase, .kraken] { rounds.prices[market] = "6800\(second % 3)" }
            #expect(rounds.tick(at: Double(second))?.quote?.source == "coinbase")
            rounds.observe(.kraken, at: Double(second) + 0.5)
        }
        rounds.prices = [.binance: "70041", .coinbase: "68002", .bitstamp: "70042"]
        rounds.isUnreachable = [.kraken]
        rounds.observe(.bitstamp, at: 14.5)
        rounds.observe(.binance, at: 14.6)
        rounds.isUnreachable = [.binance, .kraken]
        let decision = try #require(rounds.tick(at: 15))
        #expect(decision.text == "68002 coinbase unconfirmed")
        #expect(
            decision.split?.text(.usd)
                == "binance and bitstamp ($70,041.00) contradict coinbase and kraken ($68,002.00)")
    }

    @Test func `a lying source that returns while the others do not respond does not replace the next source's price`()
        throws
    {
        let rounds = rounds(Rounds.four)
        rounds.prices[.binance] = "70041"
        #expect(rounds.tick(at: 10)?.rejected.map(\.source) == ["binance"])
        rounds.isUnreachable = [.binance]
        #expect(rounds.tick(at: 11)?.quote?.source == "coinbase")
        rounds.isUnreachable = []
        for market in Rounds.four.dropFirst() {
            rounds.pushes[market] = (
                at: 11, origin: PriceOrigin(source: market.venue, pair: "BTC/USD", instance: market.venue)
            )
        }
        #expect(rounds.tick(at: 12)?.quote?.source == "coinbase")
    }
}
