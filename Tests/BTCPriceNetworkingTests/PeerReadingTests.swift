import BTCPriceCore
import BTCPriceSocket
import TestSupport
import Testing

@testable import BTCPriceNetworking

@Suite struct PeerReadingTests {
    private static let alpha = Market("alpha", "BTC/USD")

    private static func time(_ milliseconds: Int64) -> ObservationTime {
        ObservationTime(wall: Timestamp(milliseconds: 1_000_000 + milliseconds), boottime: 5_000 + milliseconds)
    }

    private static func message(
        _ value: Price = 68_900, at milliseconds: Int64 = 0, instance: String = "theirs", market: String = "BTC/USDT",
        change: (inout PriceState) -> Void = { _ in }
    ) -> StateMessage {
        var state = PriceState(
            tick: 1, freshness: .fresh,
            quote: PriceQuote(
                value: value, currency: "USD", timestamp: time(milliseconds).wall, source: "binance", market: market),
            observedBoottime: 1 + milliseconds, confirmation: .single, failure: nil)
        change(&state)
        return StateMessage(instance: instance, state: state)
    }

    private static func observed(
        _ reading: inout PeerReading, _ message: StateMessage, at milliseconds: Int64
    ) throws -> Int64? {
        let price = try reading.price(in: message, of: alpha, every: .seconds(1), at: time(milliseconds))
        return price.observed.map { $0.boottime - 5_000 }
    }

    @Test func `a price is dated by the peer's clock, and the first one by the wall clocks`() throws {
        var reading = PeerReading(ownInstance: "ours")
        #expect(try Self.observed(&reading, Self.message(at: 0), at: 700) == 0)
        #expect(try Self.observed(&reading, Self.message(at: 1000), at: 1010) == 1010)
        // The same price again has the same age.
        #expect(try Self.observed(&reading, Self.message(at: 1000), at: 2010) == 1010)
        // Delayed on the way, over a new connection too.
        #expect(try Self.observed(&reading, Self.message(at: 3000), at: 3900) == 3010)
        // A clock that is ahead gives no price from the future, and after a restart of the peer the offset is measured again.
        #expect(try Self.observed(&reading, Self.message(at: 9000, instance: "again"), at: 4000) == 4000)
    }

    @Test func `a price that the peer has converted is in dollars`() throws {
        var reading = PeerReading(ownInstance: "ours")
        let read = try reading.price(in: Self.message(), of: Self.alpha, every: .seconds(1), at: Self.time(0))
        #expect(read.push?.origin?.pair == "BTC/USDT")
        let conversion = Conversion(value: 68_900, rate: 1, sources: ["kraken"], measuredBoottime: 0)
        let converted = Self.message(at: 1) { $0.price?.conversion = conversion }
        let price = try reading.price(in: converted, of: Self.alpha, every: .seconds(1), at: Self.time(1))
        #expect(price.push?.origin?.pair == "BTC/USD")
    }

    @Test func `an unconfirmed price is marked, and is as wide as it is uncertain`() throws {
        var reading = PeerReading(ownInstance: "ours")
        // The second quote is the first one, and the last one is that before it.
        for (milliseconds, confirmation, plusMinus, expected) in [
            (0, .single, 689, 0), (0, .unconfirmed, 689, 0.01), (1, .unconfirmed, 68_901, 0),
            (1, .unconfirmed, 6890, 0.01),
            (2, .unconfirmed, Price(3445, scale: 1), 0.005), (3, .unconfirmed, nil, 0), (3, .confirmed, nil, 0),
        ] as [(Int64, BTCPriceCore.Confirmation, Price?, Double)] {
            let message = Self.message(at: milliseconds) {
                $0.price?.confirmation = confirmation
                $0.standing.uncertainty = plusMinus.map { Uncertainty(plusMinus: $0, markets: 2) }
            }
            let now = Self.time(milliseconds)
            let price = try reading.price(in: message, of: Self.alpha, every: .seconds(1), at: now)
            #expect(price.push?.origin?.confirmation == confirmation)
            #expect(abs(price.halfSpread - expected) < 1e-9, "\(price.halfSpread)")
        }
    }

    @Test func `a state without a current price of the peer's own is refused`() {
        let refused: [(StateMessage, String)] = [
            (Self.message(instance: "ours"), "refused"), (Self.message(instance: "alpha/ours"), "refused"),
            (Self.message { $0.ticks.freshness = .stale }, "unavailable"),
            (Self.message { $0.price = nil }, "unavailable"),
            (Self.message(market: "BTC/EUR"), "invalid-data"),
            (
                Self.message {
                    $0.price?.quote = PriceQuote(
                        value: 1, currency: "USD", timestamp: Self.time(0).wall, source: "binance", market: "BTC/USD",
                        via: "beta")
                }, "unavailable"
            ),
            (
                Self.message {
                    $0.price?.quote = PriceQuote(
                        value: 1, currency: "USD", timestamp: Self.time(0).wall, source: "a\u{1b}", market: "BTC/USD")
                }, "invalid-data"
            ),
        ]
        for (message, kind) in refused {
            var reading = PeerReading(ownInstance: "ours")
            let error = #expect(throws: PriceLoadingError.self) {
                try reading.price(in: message, of: Self.alpha, every: .seconds(1), at: Self.time(0))
            }
            #expect(error?.kind == kind, "\(message)")
        }
    }
}
