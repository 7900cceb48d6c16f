import BTCPriceCore
import FoundationEssentials
import TestSupport
import Testing
import Varlink

@testable import BTCPriceAPI

/// The short way to a fresh price must say what the long way says, or nothing.
@Suite struct FreshReplyTests {
    private func quote(_ value: String, currency: String = "USD", source: String = "binance") -> PriceQuote {
        PriceQuote(
            value: Decimal(exactly: value) ?? .nan, currency: currency,
            timestamp: Timestamp(milliseconds: 1_724_596_200_123), source: source, market: "BTC/USDT")
    }

    private func state(_ quote: PriceQuote) -> PriceState {
        PriceState(
            tick: 17, freshness: .fresh, quote: quote, observedBoottime: 5_000_000, confirmation: .single, failure: nil)
    }

    private func message(_ state: PriceState) -> ArraySlice<UInt8> {
        Reply.state(StateMessage(instance: "0123456789abcdef", state: state)).encoded().dropLast()
    }

    private func whole(_ message: ArraySlice<UInt8>) -> PriceState? {
        guard let parameters = try? Reply(decoding: message).parameters, let object = parameters["state"]?.objectValue
        else {
            return nil
        }
        return try? StateMessage(json: object).state
    }

    /// Whether it was taken; where it was, it is what the long way reads.
    private func held(_ message: ArraySlice<UInt8>) -> Bool {
        guard let fresh = FreshReply(message) else { return false }
        let state = whole(message)
        #expect(state?.quote?.timestamp == fresh.timestamp)
        #expect(state?.quote?.currency == "USD")
        #expect(state?.quote?.value == Decimal(exactly: String(decoding: fresh.value, as: UTF8.self)))
        #expect(state?.freshness == .fresh && state?.failure == nil && state?.warning == nil)
        return true
    }

    @Test func `a fresh price is taken`() {
        for value in ["68901.23", "1", "0.5", "99999999.12345678", "68901.225", "100000"] {
            #expect(held(message(state(quote(value)))), "\(value)")
        }
        var confirmed = state(quote("68901.23"))
        confirmed.confirmation = .confirmed
        #expect(held(message(confirmed)))
    }

    @Test func `what more is to be said of goes the long way`() {
        let fresh = state(quote("68901.23"))
        let changes: [(inout PriceState) -> Void] = [
            { $0.freshness = .stale }, { $0.failure = "no host" }, { $0.warning = "USDT is off its peg" },
            { $0.confirmation = .unconfirmed }, { $0.confirmation = nil }, { $0.observedBoottime = nil },
            { $0 = .empty }, { $0.quote = self.quote("68901.23", currency: "EUR") },
            { $0.quote = self.quote("68901.23", source: "a\"b") }, { $0.quote = self.quote("68901.23", source: "é") },
            { $0.quote = self.quote("-1") }, { $0.observedBoottime = -1 },
        ]
        for change in changes {
            var other = fresh
            change(&other)
            #expect(FreshReply(message(other)) == nil, "\(other)")
        }
        #expect(FreshReply(Reply(parameters: ["reason": .string("x")], error: "a.b.C").encoded().dropLast()) == nil)
        #expect(FreshReply([]) == nil)
    }

    @Test func `no change of its bytes makes the two ways differ`() {
        let bytes = message(state(quote("68901.23")))
        var generator = SeededGenerator.announced()
        let pieces = Array("0123456789.,:\"\\{}null-eE \u{0}\u{1F}é".utf8)
        var taken = 0
        for _ in 0..<100_000 {
            var changed = Array(bytes)
            for _ in 0..<Int.random(in: 1...2, using: &generator) {
                let place = Int.random(in: 0..<changed.count, using: &generator)
                let piece = pieces.randomElement(using: &generator) ?? 0
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: changed[place] = piece
                case 1: changed.insert(piece, at: place)
                default: changed.remove(at: place)
                }
            }
            if held(changed[...]) { taken += 1 }
        }
        #expect(taken > 1000, "\(taken) of the changed ones were taken: else this shows nothing")
    }

    @Test func `the commonest call's bytes are the encoder's`() {
        for policy in CachePolicy.allCases {
            #expect(PriceCall.getPrice(policy).encoded == PriceCall.getPrice(policy).call.encoded())
        }
        #expect(PriceCall.watchPrice.encoded == PriceCall.watchPrice.call.encoded())
    }
}
