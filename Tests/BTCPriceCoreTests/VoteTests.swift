import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

/// Properties of one vote, for random elections.
@Suite struct VoteTests {
    private struct Election {
        var generator: SeededGenerator
        let width = Vote.Bounds.width

        func claim(_ venue: String, _ middle: Double, voter: String? = nil, halfWidth: Double? = nil) -> Claim {
            Claim(
                price: MarketObservation(Market(venue, "BTC/USD"), 68_900, arrival: Rounds.time(0)), middle: middle,
                halfWidth: halfWidth ?? width, voter: voter ?? venue, opposes: true)
        }

        /// Exchanges within a tenth of a percent of each other.
        mutating func honest(_ count: Int) -> [Claim] {
            (0..<count).map { index in
                claim(
                    "honest\(index)", Double.random(in: -0.0005...0.0005, using: &generator),
                    halfWidth: width + Double.random(in: 0...Vote.Bounds.slack, using: &generator))
            }
        }
    }

    @Test func `the order of the claims does not matter`() {
        var election = Election(generator: SeededGenerator(seed: 1))
        for _ in 0..<2000 {
            let preferred = [election.claim("preferred", Double.random(in: -0.01...0.01, using: &election.generator))]
            let others = (0..<Int.random(in: 0...6, using: &election.generator)).map {
                election.claim("\($0)", Double.random(in: -0.01...0.01, using: &election.generator))
            }
            let vote = Vote(preferred, others, last: 0.0001)
            let shuffled = Vote(preferred, others.shuffled(using: &election.generator), last: 0.0001)
            #expect(vote.votes == shuffled.votes && vote.isDecided == shuffled.isDecided)
            #expect(Set(vote.members.map(\.voter)) == Set(shuffled.members.map(\.voter)))
        }
    }

    @Test(arguments: 3...7)
    func `one liar does not move the shown price out of the honest prices by more than two widths`(count: Int) {
        var election = Election(generator: SeededGenerator(seed: UInt64(count)))
        for _ in 0..<2000 {
            let honest = election.honest(count - 1)
            let lie = pow(10, Double.random(in: -4...1, using: &election.generator))
            let liar = election.claim("liar", Bool.random(using: &election.generator) ? lie : -lie)
            // Preferred or not.
            let isFirst = Bool.random(using: &election.generator)
            let vote =
                isFirst ? Vote([liar], honest, last: nil) : Vote([honest[0]], [liar] + honest.dropFirst(), last: nil)
            #expect(vote.isDecided)
            let (low, high) = (honest.map(\.low).min() ?? 0, honest.map(\.high).max() ?? 0)
            for member in vote.members {
                #expect(member.middle >= low - 2 * election.width && member.middle <= high + 2 * election.width)
            }
            #expect(vote.votes >= count - 1)
        }
    }

    @Test func `an exchange under two names counts once`() {
        let election = Election(generator: SeededGenerator(seed: 0))
        let twins = [election.claim("a", 0.03, voter: "x"), election.claim("b", 0.03, voter: "x")]
        let vote = Vote([election.claim("c", 0)], twins, last: nil)
        #expect(vote.votes == 1 && vote.rivals == 1 && !vote.isDecided)
        // A rate of USDT that only one exchange states does not give that exchange a second vote.
        let stated = Vote([election.claim("d", 0.03, voter: "x")], [twins[0]], last: nil)
        #expect(stated.votes == 1 && stated.opponents.isEmpty)
    }

    @Test func `a price in USDT at two rates counts once`() {
        let election = Election(generator: SeededGenerator(seed: 0))
        // At the confirmed rate it is its own, at the stated one kraken's.
        let places = [election.claim("binance", 0.01), election.claim("binance", 0.0101, voter: "kraken")]
        let vote = Vote(places, [election.claim("kraken", 0)], last: nil)
        #expect(vote.votes == 1 && vote.rivals == 1 && !vote.isDecided)
    }

    @Test func `a hundred thousand random elections end`() {
        var election = Election(generator: SeededGenerator(seed: 2))
        // Also values that no price has.
        let extremes = [0, -0.0, 1e300, -1e300, .infinity, -.infinity, .nan, .leastNonzeroMagnitude]
        let claims = (0..<512).map { index in
            election.claim(
                "\(index % 9)",
                index < extremes.count ? extremes[index] : Double.random(in: -0.02...0.02, using: &election.generator),
                halfWidth: index % 7 == 0 ? 0 : nil)
        }
        var decided = 0
        for _ in 0..<100_000 {
            let drawn = (0..<Int.random(in: 1...6, using: &election.generator)).map { _ in
                claims[Int.random(in: 0..<claims.count, using: &election.generator)]
            }
            let vote = Vote([drawn[0]], Array(drawn.dropFirst()), last: drawn.last?.middle)
            if vote.isDecided { decided += 1 }
        }
        #expect(decided > 0)
    }
}
