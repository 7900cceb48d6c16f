import Testing

@testable import BTCPriceCore

@Suite struct PeerTests {
    private static let alpha = Market("alpha", "BTC/USD")

    private func rounds(_ markets: [Market]) -> Rounds {
        let rounds = Rounds(markets)
        rounds.pushes[Self.alpha] = (at: 1, origin: PriceOrigin(source: "binance", pair: "BTC/USDT", instance: "one"))
        rounds.prices[Self.alpha] = "68901"
        return rounds
    }

    @Test func `the quote of a peer names the peer and its source, and has the time of the push`() throws {
        let decision = try #require(rounds([Self.alpha]).tick(at: 1.8))
        let quote = try #require(decision.quote)
        #expect((quote.source, quote.market, quote.via, quote.supplier) == ("binance", "BTC/USDT", "alpha", "alpha"))
        #expect(decision.observed == Rounds.time(1))
    }

    @Test func `a peer's price counts for two intervals`() {
        let rounds = rounds([Self.alpha])
        #expect(rounds.give(Self.alpha, at: Rounds.time(3)) == nil)
        #expect(rounds.give(Self.alpha, at: Rounds.time(3.1))?.category == .staleData)
    }

    @Test(arguments: [(0.0, MarketVerdict.old, false), (1.9, .agrees, true)])
    func `a peer's price is a witness only if it was observed after the move began`(
        pushed: Double, verdict: MarketVerdict, isShown: Bool
    ) throws {
        let rounds = rounds([.binance, Self.alpha])
        rounds.prices[.binance] = "68900"
        _ = rounds.tick(at: 1)
        rounds.pushes[Self.alpha] = (
            at: pushed, origin: PriceOrigin(source: "kraken", pair: "BTC/USD", instance: "one")
        )
        rounds.prices[.binance] = "71000"
        rounds.prices[Self.alpha] = "71000"
        let decision = try #require(rounds.tick(at: 2))
        #expect(decision.verdicts[Self.alpha] == verdict)
        #expect((decision.quote != nil) == isShown)
    }

    @Test(arguments: [true, false])
    func `the price of the only source has its own confirmation and uncertainty, if it is a peer`(
        isOnly: Bool
    ) throws {
        let rounds = rounds(isOnly ? [Self.alpha] : [Self.alpha, .binance])
        (rounds.confirmation, rounds.uncertainty) = (.confirmed, Uncertainty(plusMinus: 70, markets: 3))
        var decisions = [Decision]()
        for second in 1...3 {
            rounds.pushes[Self.alpha]?.at = Double(second)
            rounds.prices[Self.alpha] = "\(68_900 + second)"
            decisions.append(try #require(rounds.tick(at: Double(second) + 0.5)))
        }
        #expect(decisions[0].confirmation == (isOnly ? .confirmed : .single))
        #expect(decisions[2].confirmation == (isOnly ? .confirmed : .single))
        let uncertainty = decisions[2].standing.uncertainty
        #expect(uncertainty?.markets == (isOnly ? 3 : nil))
        // It may have moved since.
        if isOnly {
            #expect(uncertainty.map { $0.plusMinus > 70 && $0.plusMinus < 200 } == true, "\(uncertainty as Any)")
        }
        rounds.confirmation = .unconfirmed
        rounds.pushes[Self.alpha]?.at = 4
        rounds.prices[Self.alpha] = "68904"
        #expect(rounds.tick(at: 4.5)?.confirmation == .unconfirmed)
        // The peer's doubt is over.
        rounds.confirmation = .confirmed
        rounds.pushes[Self.alpha]?.at = 5
        rounds.prices[Self.alpha] = "68905"
        #expect(rounds.tick(at: 5.5)?.confirmation == (isOnly ? .confirmed : .unconfirmed))
    }

    @Test func `whatever a peer says of its uncertainty, the price is shown`() throws {
        let rounds = rounds([Self.alpha])
        for (second, plusMinus) in [Price(1), price("1e30"), price("-1e30"), 0].enumerated() {
            rounds.uncertainty = Uncertainty(plusMinus: plusMinus, markets: 3)
            rounds.pushes[Self.alpha]?.at = Double(second + 1)
            rounds.prices[Self.alpha] = "\(68_901 + second)"
            #expect(rounds.tick(at: Double(second) + 1.5)?.quote != nil)
        }
    }

    @Test func `a median that includes a peer names the peer as its way`() throws {
        let rounds = Rounds([Self.alpha, .coinbase, .kraken], rules: SelectionRules(mode: .median, quorum: 2))
        rounds.pushes[Self.alpha] = (at: 1, origin: PriceOrigin(source: "kraken", pair: "BTC/USD", instance: "one"))
        rounds.prices = [Self.alpha: "68901", .coinbase: "68902", .kraken: "68903"]
        #expect(rounds.tick(at: 1)?.quote?.via == "alpha")
        rounds.prices[Self.alpha] = "50000"
        #expect(rounds.tick(at: 2)?.quote?.via == nil)
    }
}
