import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceFeature

@Suite struct PriceRequirementsTests {
    private let now = ObservationTime(wall: Timestamp(milliseconds: 1_000_000), boottime: 100_000)

    private func state(_ confirmation: BTCPriceCore.Confirmation?, uncertainty: String? = nil, age: Int64 = 0)
        -> PriceState
    {
        PriceState(
            tick: 1, freshness: .fresh,
            quote: PriceQuote(
                value: 70000, currency: "USD", timestamp: Timestamp(milliseconds: 1_000_000 - age), source: "binance",
                market: "BTC/USD"),
            observedBoottime: now.boottime - age, confirmation: confirmation, failure: nil,
            uncertainty: uncertainty.flatMap(Price.init).map { Uncertainty(plusMinus: $0, markets: 2) })
    }

    @Test func `without a requirement every price is accepted`() {
        for confirmation in BTCPriceCore.Confirmation.allCases {
            #expect(PriceRequirements().refusal(of: state(confirmation, age: 90_000), at: now) == nil)
        }
    }

    @Test(arguments: [
        (PriceRequirements.Trust.usual, BTCPriceCore.Confirmation?.none, nil), (.usual, .single, nil),
        (.usual, .confirmed, nil),
        (.usual, .unconfirmed, PriceRequirements.Refusal.unconfirmed), (.confirmed, nil, .unconfirmed),
        (.confirmed, .single, .single), (.confirmed, .confirmed, nil), (.confirmed, .unconfirmed, .unconfirmed),
    ])
    func `what others say decides`(
        trust: PriceRequirements.Trust, confirmation: BTCPriceCore.Confirmation?, expected: PriceRequirements.Refusal?
    ) {
        #expect(PriceRequirements(trust: trust).refusal(of: state(confirmation), at: now) == expected)
    }

    @Test func `an uncertainty that is larger or unknown is refused, at the bound none is`() {
        let half = PriceRequirements(maxUncertainty: Price("0.5"))
        #expect(half.refusal(of: state(.confirmed, uncertainty: "350"), at: now) == nil)
        let more = half.refusal(of: state(.confirmed, uncertainty: "420.7"), at: now)
        #expect(more?.predicate == "has an uncertainty of 0.601 %, more than 0.5 %" && more?.word == "uncertain")
        #expect(half.refusal(of: state(.confirmed), at: now) == .ofUnknownUncertainty)
    }

    @Test func `an age that is larger or unknown is refused, at the bound none is`() {
        let minute = PriceRequirements(maxAge: .seconds(60))
        #expect(minute.refusal(of: state(.confirmed, age: 60_000), at: now) == nil)
        #expect(minute.refusal(of: state(.confirmed, age: 61_500), at: now) == .tooOld(61_500, most: 60_000))
        var old = state(.confirmed)
        old.price?.observedBoottime = nil
        #expect(minute.refusal(of: old, at: now) == .ofUnknownAge)
        // There is no price to refuse.
        #expect(minute.refusal(of: .empty(), at: now) == nil)
    }
}
