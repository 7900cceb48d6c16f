import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct MessageTests {
    private func call(_ text: String) throws(MessageError) -> Call { try Call(decoding: Array(text.utf8)[...]) }

    @Test func `a call is read`() throws {
        #expect(try call(#"{"method":"a.b.C"}"#) == Call(method: "a.b.C"))
        #expect(
            try call(#"{"method":"a.b.C","parameters":{"x":1},"more":true}"#)
                == Call(method: "a.b.C", parameters: ["x": .integer(1)], more: true))
        // The Python client always sends this member.
        #expect(try call(#"{"method":"a.b.C","parameters":{},"more":false}"#) == Call(method: "a.b.C"))
        #expect(try call(#"{"method":"a.b.C","parameters":null}"#) == Call(method: "a.b.C"))
    }

    @Test(arguments: [
        "", "[]", "1", "{}", #"{"method":""}"#, #"{"method":1}"#, #"{"method":"a.B","x":1}"#,
        #"{"method":"a.B","parameters":[]}"#, #"{"method":"a.B","more":1}"#,
        #"{"method":"a.B","more":true,"oneway":true}"#, #"{"method":"a.B","more":true,"upgrade":true}"#,
        #"{"method":"a.B","method":"a.B"}"#, #"{"method":"a.B"} "x""#,
    ])
    func `an invalid call is refused`(text: String) {
        #expect(throws: MessageError.self) { try call(text) }
    }

    @Test func `a call's interface ends at the last dot`() {
        #expect(Call(method: "io.btcpriced.Price.GetPrice").interface == "io.btcpriced.Price")
        #expect(Call(method: "GetPrice").interface == nil)
    }

    @Test func `messages have the form that systemd's client accepts`() throws {
        #expect(text(Call(method: "a.b.C").encoded()) == #"{"method":"a.b.C"}"# + "\0")
        #expect(
            text(Call(method: "a.b.C", parameters: ["x": .null], more: true).encoded())
                == #"{"method":"a.b.C","parameters":{"x":null},"more":true}"# + "\0")
        #expect(text(Reply().encoded()) == #"{"parameters":{}}"# + "\0")
        #expect(text(Reply(continues: true).encoded()) == #"{"parameters":{},"continues":true}"# + "\0")
        #expect(
            text(Reply.invalidParameter(JSONValue(.string("x"))).encoded())
                == #"{"error":"org.varlink.service.InvalidParameter","parameters":{"parameter":"x"}}"# + "\0")
        let reply = Reply(parameters: ["a": .integer(1)], continues: true)
        #expect(try Reply(decoding: reply.encoded().dropLast()) == reply)
        #expect(throws: MessageError.self) { try Reply(decoding: Array(#"{"other":1}"#.utf8)[...]) }
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

@Suite struct MessageBufferTests {
    @Test(arguments: 1...9) func `a stream is cut at its NULs, for any pieces`(chunk: Int) throws {
        let stream = Array("first\0\0third, longer\0rest".utf8)
        var buffer = MessageBuffer(limit: 100)
        var messages: [String] = []
        for start in Swift.stride(from: 0, to: stream.count, by: chunk) {
            buffer.append(stream[start..<min(stream.count, start + chunk)])
            while let message = try buffer.next() { messages.append(String(decoding: message, as: UTF8.self)) }
        }
        #expect(messages == ["first", "", "third, longer"])
        #expect(buffer.count == 4)
    }

    @Test func `a message over the limit is an error, with and without its end`() throws {
        var endless = MessageBuffer(limit: 10)
        endless.append(Array("0123456789".utf8)[...])
        #expect(try endless.next() == nil)
        endless.append(Array("x".utf8)[...])
        #expect(throws: MessageError.self) { try endless.next() }
        var whole = MessageBuffer(limit: 10)
        whole.append(Array("0123456789x\0".utf8)[...])
        #expect(throws: MessageError.self) { try whole.next() }
    }

    @Test func `the buffer holds only unread bytes`() throws {
        var buffer = MessageBuffer(limit: 10_000)
        for _ in 0..<10_000 {
            buffer.append((Array(repeating: 0x61, count: 99) + [0])[...])
            #expect(try buffer.next()?.count == 99)
        }
        #expect(buffer.count == 0)
    }
}

@Suite struct ServiceInterfaceTests {
    @Test func `the service reports its information and its interfaces`() {
        let info = ServiceInterface.reply(to: Call(method: "org.varlink.service.GetInfo"))
        #expect(
            ServiceInterface.reply(to: Call(method: "org.varlink.service.GetInfo", upgrade: true)).error
                == "org.varlink.service.MethodNotImplemented")
        #expect(
            info.parameters.tree["interfaces"]
                == .array(
                    ["org.varlink.service", PriceInterface.name, HistoryInterface.name].map { .string($0) }))
        #expect(info.parameters.tree["product"] == .string("btc-priced"))
    }

    @Test func `the service describes its interfaces, and no others`() {
        func describe(_ parameters: JSONObject) -> Reply {
            ServiceInterface.reply(
                to: Call(method: "org.varlink.service.GetInterfaceDescription", parameters: parameters))
        }
        let known: JSON = .string(PriceInterface.name)
        #expect(describe(["interface": known]).parameters.tree["description"] == .string(PriceInterface.description))
        #expect(describe(["interface": .string("x.y")]).error == "org.varlink.service.InterfaceNotFound")
        #expect(describe([:]).error == "org.varlink.service.InvalidParameter")
        #expect(describe(["interface": .integer(1)]).error == "org.varlink.service.InvalidParameter")
        #expect(describe(["interface": known, "x": .null]).parameters.tree["parameter"] == .string("x"))
        #expect(
            ServiceInterface.reply(to: Call(method: "org.varlink.service.Other")).error
                == "org.varlink.service.MethodNotFound")
    }
}
