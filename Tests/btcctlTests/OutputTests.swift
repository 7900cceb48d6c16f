import BTCPriceCore
import BTCPriceSocket
import TestSupport
import Testing

@testable import btcctl

@Suite struct OutputTests {
    @Test func `a state as JSON has the interface's fields, the version and the age`() {
        let message = StateMessage(
            instance: "i",
            state: PriceState(
                tick: 3, freshness: .fresh,
                quote: PriceQuote(
                    value: Price("75500.99") ?? 0, currency: "USD",
                    timestamp: Timestamp(milliseconds: 1000), source: "coinbase", market: "BTC/USD"),
                observedBoottime: 5000, confirmation: .single, failure: nil))
        let now = ObservationTime(wall: Timestamp(milliseconds: 0), boottime: 5250)
        // DefinitionTests compares the fields between them with the definition.
        let full = Output.json(message, at: now)
        #expect(full.hasPrefix(#"{"version":1,"instance":"i","tick":3,"freshness":"fresh","quote":{"value":"75500.99"#))
        #expect(full.hasSuffix(#","ageMs":250,"ageIsEstimate":false}"#))
        let empty = Output.json(StateMessage(instance: "i", state: .empty()), at: now)
        #expect(empty.hasPrefix(#"{"version":1,"instance":"i","tick":0,"freshness":"none","quote":null,"#))
        #expect(empty.hasSuffix(#","ageMs":null,"ageIsEstimate":null}"#))
    }

    @Test func `an error as JSON has a kind, a line of text and the status`() {
        #expect(
            Output.json(Complaint(word: "tooOld", message: "a \"b\"", status: 75))
                == #"{"version":1,"error":"tooOld","message":"a \"b\"","exitStatus":75}"#)
    }
}
