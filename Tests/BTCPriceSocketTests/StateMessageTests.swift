import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct StateMessageTests {
    private let full = StateMessage(
        instance: "0123456789abcdef",
        state: PriceState(
            tick: 17, freshness: .fresh,
            quote: PriceQuote(
                value: Price("75500.99") ?? 0, currency: "USD",
                timestamp: Timestamp(milliseconds: 1_724_596_200_123), source: "binance", market: "BTC/USDT"),
            observedBoottime: 5_000_000, confirmation: .single, failure: nil))

    @Test func `a state is sent as in the interface`() {
        // DefinitionTests compares the other fields with the definition.
        #expect(
            JSON.object(full.json).text.hasPrefix(
                #"{"instance":"0123456789abcdef","tick":17,"freshness":"fresh","quote":{"value":"75500.99","currency":"USD","timestamp":1724596200123,"source":"binance","market":"BTC/USDT","via":null},"observedBoottime":5000000,"confirmation":"single","failure":null,"#
            ))
        #expect(
            JSON.object(StateMessage(instance: "x", state: .empty()).json).text.hasPrefix(
                #"{"instance":"x","tick":0,"freshness":"none","quote":null,"observedBoottime":null,"confirmation":null,"#
            ))
    }

    @Test func `a newer daemon's fields are ignored, an unknown word is refused`() throws {
        var newer = full.json
        newer["basis"] = .number("0.14")
        newer["ticking"] = .string("asleep")
        #expect(try StateMessage(json: newer.value) == full)
        var broken = full.json
        broken["freshness"] = .string("rotten")
        #expect(throws: JSONFieldError(field: "freshness")) { try StateMessage(json: broken.value) }
        broken = full.json
        broken["quote"] = .object(["value": .string("12abc")])
        #expect(throws: JSONFieldError(field: "value")) { try StateMessage(json: broken.value) }
    }

    @Test(arguments: ["0", "-1", "0.99", "90000000000.01", "1e19", "1e128"])
    func `a price that no currency can have is refused`(value: String) {
        var quote = full.json["quote"]?.objectValue ?? [:]
        quote["value"] = .string(value)
        var broken = full.json
        broken["quote"] = .object(quote)
        #expect(throws: JSONFieldError(field: "value")) { try StateMessage(json: broken.value) }
    }

    @Test(arguments: [Int64.min, .max, 1 << 49])
    func `an impossible time is refused`(time: Int64) {
        var broken = full.json
        broken["observedBoottime"] = .integer(time)
        #expect(throws: JSONFieldError(field: "observedBoottime")) { try StateMessage(json: broken.value) }
        broken = full.json
        var quote = full.json["quote"]?.objectValue ?? [:]
        quote["timestamp"] = .integer(time)
        broken["quote"] = .object(quote)
        #expect(throws: JSONFieldError(field: "timestamp")) { try StateMessage(json: broken.value) }
        broken = full.json
        broken["conversion"] = .object([
            "value": .string("1"), "rate": .string("1"), "sources": .array([]), "measuredBoottime": .integer(time),
        ])
        #expect(throws: JSONFieldError(field: "measuredBoottime")) { try StateMessage(json: broken.value) }
    }

    @Test func `calls are read or refused by the interface's rules`() {
        func read(_ name: String, _ parameters: JSONObject = [:], more: Bool = false, upgrade: Bool = false) -> String {
            let call = Call(
                method: "io.btcpriced.Price.\(name)", parameters: parameters, more: more, upgrade: upgrade)
            switch PriceCall.read(call) {
            case nil: return "none"
            case .success(let call)?: return "\(call)"
            case .failure(let refusal)?:
                let parameter = refusal.reply.parameters.tree.members.first?.value.stringValue ?? ""
                return "\(refusal.reply.error ?? "") \(parameter)"
            }
        }
        func getPrice(_ policy: String, maxAge: String = "nil") -> String {
            "getPrice(BTCPriceCore.CachePolicy.\(policy), nil, maxAge: \(maxAge))"
        }
        #expect(read("GetPrice") == getPrice("localFirst"))
        #expect(read("GetPrice", ["cachePolicy": .null]) == getPrice("localFirst"))
        #expect(read("GetPrice", ["cachePolicy": .string("noCache")]) == getPrice("noCache"))
        #expect(read("GetPrice", ["maxAgeMs": .integer(0)]) == getPrice("localFirst", maxAge: "Optional(0)"))
        #expect(read("GetPrice", ["maxAgeMs": .null]) == getPrice("localFirst"))
        for wrong in [JSON.integer(-1), .integer(1 << 49), .string("1"), .number("1.5")] {
            for name in ["GetPrice", "WatchPrice"] {
                #expect(
                    read(name, ["maxAgeMs": wrong], more: name == "WatchPrice")
                        == "org.varlink.service.InvalidParameter maxAgeMs")
            }
        }
        #expect(read("GetPrice", ["cachePolicy": .string("x")]) == "org.varlink.service.InvalidParameter cachePolicy")
        #expect(read("GetPrice", ["cachePolicy": .integer(1)]) == "org.varlink.service.InvalidParameter cachePolicy")
        #expect(read("GetPrice", ["other": .null]) == "org.varlink.service.InvalidParameter other")
        #expect(read("WatchPrice", more: true) == "watchPrice(nil, BTCPriceSocket.WatchUpdates.ticks, maxAge: nil)")
        #expect(
            read("WatchPrice", ["updates": .string("changes")], more: true)
                == "watchPrice(nil, BTCPriceSocket.WatchUpdates.changes, maxAge: nil)")
        #expect(
            read("WatchPrice", ["updates": .string("x")], more: true)
                == "org.varlink.service.InvalidParameter updates")
        #expect(read("WatchPrice") == "org.varlink.service.ExpectedMore ")
        #expect(read("WatchPrice", ["x": .null], more: true) == "org.varlink.service.InvalidParameter x")
        #expect(read("SetPrice") == "none")
        #expect(
            read("GetPrice", upgrade: true)
                == "org.varlink.service.MethodNotImplemented io.btcpriced.Price.GetPrice")
    }

    @Test func `the error of an old price has its age and the reason`() {
        let reply = Reply.tooOld(full.state, at: 5_002_000)
        #expect(reply.parameters.text.elementsEqual(#"{"ageMs":2000,"reason":null}"#.utf8))
    }

    @Test(arguments: CachePolicy.allCases) func `a call is read back unchanged`(policy: CachePolicy) throws {
        for made in [
            PriceCall.getPrice(policy), .getPrice(policy, "EUR", maxAge: 5000), .watchPrice(),
            .watchPrice(["EUR"], .changes, maxAge: 5000), .watchPrice(["USD", "EUR"]), .listCurrencies, .getStatus,
            .listSources("EUR"), .getMetrics, .pause, .resume, .retry("kraken"), .setSource("kraken", isOn: false),
        ] {
            let call = try Call(decoding: made.call.encoded().dropLast())
            #expect(try PriceCall.read(call)?.get() == made)
        }
    }
}
