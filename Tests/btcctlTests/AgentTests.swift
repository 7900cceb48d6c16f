import BTCPriceSocket
import Testing

@testable import btcctl

/// What the clients `mcp` 2.3.0 and 1.30.0 (PyPI) send, and what they need in a reply.
@Suite struct AgentTests {
    private let agent = AgentProtocol(
        tools: [
            AgentTool(
                name: "double", about: "Twice a number.",
                arguments: [.init("number", "The number.", .number, isRequired: true), .init("unit", "Its unit.")],
                results: [.init("number", "The number.", .number, isRequired: true), .init("unit", "Its unit.")]
            ) { given throws(Complaint) in
                guard let number = given["number"]?.integerValue else { throw .noPrice("too large") }
                return ["number": .integer(2 * number), "unit": .optional(given["unit"]?.stringValue)]
            }
        ], instructions: "Be honest.")

    private static let envelope =
        #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcp","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#

    private func reply(_ text: String) throws -> JSONValue? {
        try agent.reply(to: Array(text.utf8)[...]).map { try JSONValue(parsing: Array($0.text.utf8)[...]) }
    }

    private func code(_ text: String) throws -> Int64? { try reply(text)?["error"]?["code"]?.integerValue }

    @Test func `a client that begins with initialize gets its version, or the newest of that era`() throws {
        for (wanted, given) in [
            ("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25"),
            ("2031-01-01", "2025-11-25"),
        ] {
            let result = try reply(
                #"{"method":"initialize","params":{"protocolVersion":"\#(wanted)","capabilities":{},"clientInfo":{"name":"mcp","version":"0.1.0"}},"jsonrpc":"2.0","id":0}"#
            )
            #expect(result?["id"]?.integerValue == 0, "the first id of mcp 1.30.0")
            #expect(result?["result"]?["protocolVersion"]?.stringValue == given)
            #expect(result?["result"]?["serverInfo"]?["name"]?.stringValue == "btc-priced")
            #expect(result?["result"]?["instructions"]?.stringValue == "Be honest.")
            #expect(result?["result"]?["resultType"] == nil)
        }
        #expect(try reply(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#) == nil)
        #expect(try reply(#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)?["result"]?.text.count == 2)
        let list = try reply(#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#)
        #expect(list?["result"]?["ttlMs"] == nil)
        let tool = list?["result"]?["tools"]?.element(0)
        #expect(tool?["inputSchema"]?["type"]?.stringValue == "object")
        #expect(tool?["inputSchema"]?["additionalProperties"]?.boolValue == false)
        #expect(tool?["outputSchema"]?["properties"]?["unit"]?["type"]?.element(1)?.stringValue == "null")
    }

    @Test func `each request of the later era has its version, and each result says that it is complete`() throws {
        let discovered = try reply(#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{\#(Self.envelope)}}"#)
        #expect(discovered?["result"]?["supportedVersions"]?.element(0)?.stringValue == "2026-07-28")
        #expect(discovered?["result"]?["capabilities"]?["tools"]?.objectValue != nil)
        for method in ["server/discover", "tools/list"] {
            let result = try reply(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":{\#(Self.envelope)}}"#)?[
                "result"]
            #expect(result?["resultType"]?.stringValue == "complete")
            #expect(result?["ttlMs"]?.integerValue ?? -1 >= 0)
            #expect(result?["cacheScope"]?.stringValue == "public")
            #expect(result?["_meta"]?["io.modelcontextprotocol/serverInfo"]?["version"]?.stringValue == Product.version)
        }
        let called = try reply(
            #"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"double","arguments":{"number":4},\#(Self.envelope)}}"#
        )?["result"]
        #expect(called?["resultType"]?.stringValue == "complete")
        #expect(called?["ttlMs"] == nil)
        #expect(called?["structuredContent"]?["number"]?.integerValue == 8)
        #expect(called?["content"]?.element(0)?["text"]?.stringValue == #"{"number":8,"unit":null}"#)
        #expect(try code(#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{\#(Self.envelope)}}"#) == -32601)
        let later = Self.envelope.replacing("2026-07-28", with: "2027-01-01")
        let refused = try reply(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{\#(later)}}"#)?["error"]
        #expect(refused?["code"]?.integerValue == -32022)
        #expect(refused?["data"]?["requested"]?.stringValue == "2027-01-01")
        let without = #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#
        #expect(try code(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{\#(without)}}"#) == -32602)
        #expect(try code(#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#) == -32602)
    }

    @Test(arguments: [
        ("[", -32700), ("[]", -32600), ("7", -32600), (#"{"id":1,"method":"ping"}"#, -32600),
        (#"{"jsonrpc":"2.0","id":1}"#, -32600), (#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#, -32600),
        (#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32601),
        (#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602),
        (#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602),
        (#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"triple"}}"#, -32602),
    ])
    func `a wrong request is an error, and the next one is answered`(text: String, expected: Int64) throws {
        #expect(try code(text) == expected)
    }

    @Test func `what needs no reply gets none, and a message that is too long gets one`() throws {
        for text in [
            #"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#,
            #"{"jsonrpc":"2.0","id":4,"result":{}}"#, #"{"jsonrpc":"2.0","method":"unknown"}"#,
        ] {
            #expect(try reply(text) == nil)
        }
        #expect(agent.reply(to: nil)?.text.contains("-32700") == true)
    }

    @Test(arguments: [
        (#"{"number":"4"}"#, "'number' is not a number: double takes number (number), unit (string)."),
        (#"{"number":4,"units":"m"}"#, "'units' is no argument"), ("{}", "'number' is missing"),
        ("[4]", "The arguments are not an object"), (#"{"number":4e99}"#, "too large"),
    ])
    func `an error of a tool is a result that the model sees`(arguments: String, words: String) throws {
        let result = try reply(
            #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"double","arguments":\#(arguments)}}"#)?[
                "result"]
        #expect(result?["isError"]?.boolValue == true)
        #expect(result?["structuredContent"] == nil)
        #expect(result?["content"]?.element(0)?["text"]?.stringValue?.contains(words) == true)
    }

    @Test func `the tools have names, and fields of different names`() {
        let tools = AgentTools(daemon: DaemonAddress()).all
        #expect(tools.map(\.name) == ["price", "price_at", "history", "convert", "status"])
        for tool in tools {
            for fields in [tool.arguments, tool.results] {
                #expect(Set(fields.map { "\($0.name)" }).count == fields.count)
            }
        }
    }
}
