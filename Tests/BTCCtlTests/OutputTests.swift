import BTCPriceCore
import BTCPriceAPI
import Testing

@testable import BTCCtl

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
        #expect(
            Output.json(message, at: now)
                == #"{"version":1,"instance":"i","tick":3,"freshness":"fresh","quote":{"value":"75500.99","currency":"USD","timestamp":1000,"source":"coinbase","market":"BTC/USD","via":null},"observedBoottime":5000,"confirmation":"single","failure":null,"warning":null,"consensus":null,"conversion":null,"uncertainty":null,"currency":"USD","day":null,"ageMs":250,"ageIsEstimate":false}"#
        )
        #expect(
            Output.json(StateMessage(instance: "i", state: .empty()), at: now)
                == #"{"version":1,"instance":"i","tick":0,"freshness":"none","quote":null,"observedBoottime":null,"confirmation":null,"failure":null,"warning":null,"consensus":null,"conversion":null,"uncertainty":null,"currency":"USD","day":null,"ageMs":null,"ageIsEstimate":null}"#
        )
    }

    @Test func `an error as JSON has a kind, a line of text and the status`() {
        #expect(
            Output.json(Complaint(word: "tooOld", message: "a \"b\"", status: 75))
                == #"{"version":1,"error":"tooOld","message":"a \"b\"","exitStatus":75}"#)
    }
}
