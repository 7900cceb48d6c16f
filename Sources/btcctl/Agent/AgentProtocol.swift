import BTCPriceCore
import BTCPriceSocket

/// The Model Context Protocol (modelcontextprotocol.io) as a server of tools over JSON-RPC 2.0. A pure value: a message in, a message out.
///
/// Clients of both eras are served, also mixed: until 2025-11-25 a connection begins with `initialize`; since 2026-07-28 each request has
/// its version in `_meta`, and a result says more of itself.
struct AgentProtocol {
    /// An error of JSON-RPC.
    private struct Failure: Error {
        static let parse = Failure(code: -32700, message: "Not valid JSON, or longer than \(longest >> 20) MiB")
        static let request = Failure(code: -32600, message: "Not a JSON-RPC 2.0 request")

        let code: Int64
        let message: String
        var data: JSON?

        static func parameters(_ reason: String) -> Failure { Failure(code: -32602, message: reason) }
    }

    /// The maximum length of a message, bytes.
    static let longest = 1 << 20
    private static let earlier = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    private static let present = "2026-07-28"
    private static let name: JSON = .object([
        "name": .string("btc-priced"), "version": .string(Product.version),
    ])
    private static let capabilities: JSON = .object(["tools": .object([:])])
    /// For how long a client may keep what does not change while the program runs, milliseconds.
    private static let lasts: Int64 = 3_600_000

    let tools: [AgentTool]
    /// What the client tells the model about the tools.
    let instructions: String

    /// - Parameter line: A message; `nil` for one that is too long.
    /// - Returns: The reply; `nil` for a notification.
    func reply(to line: ArraySlice<UInt8>?) -> JSON? {
        guard let line, let message = try? JSONValue(parsing: line) else { return Self.reply(.null, .parse) }
        guard message.objectValue != nil, message["jsonrpc"]?.isString("2.0") == true else {
            return Self.reply(.null, .request)
        }
        guard let method = message["method"]?.stringValue else {
            // A reply, which was not requested.
            let isReply = message["result"] != nil || message["error"] != nil
            return isReply ? nil : Self.reply(.null, .request)
        }
        guard let given = message["id"] else { return nil }
        let id: JSON
        if let text = given.stringValue {
            id = .string(text)
        } else if let number = given.number {
            id = .number(String(decoding: number, as: UTF8.self))
        } else {
            return Self.reply(.null, .request)
        }
        do throws(Failure) {
            return .object([
                "jsonrpc": .string("2.0"), "id": id, "result": .object(try result(method, message["params"])),
            ])
        } catch {
            return Self.reply(id, error)
        }
    }

    private static func reply(_ id: JSON, _ failure: Failure) -> JSON {
        var error: JSONObject = ["code": .integer(failure.code), "message": .string(failure.message)]
        if let data = failure.data { error["data"] = data }
        return .object(["jsonrpc": .string("2.0"), "id": id, "error": .object(error)])
    }

    private func result(_ method: String, _ parameters: JSONValue?) throws(Failure) -> JSONObject {
        let parameters = parameters.flatMap { $0.isNull ? nil : $0 }
        guard parameters.map({ $0.objectValue != nil }) ?? true else { throw .parameters("params is not an object") }
        let isPresent = try Self.isPresent(parameters?["_meta"])
        var result: JSONObject
        switch method {
        case "initialize" where !isPresent:
            let wanted = parameters?["protocolVersion"]?.stringValue ?? ""
            return [
                "protocolVersion": .string(Self.earlier.contains(wanted) ? wanted : "2025-11-25"),
                "capabilities": Self.capabilities, "serverInfo": Self.name,
                "instructions": .string(instructions),
            ]
        case "ping" where !isPresent: return [:]
        case "server/discover":
            guard isPresent else { throw .parameters("_meta has no io.modelcontextprotocol/protocolVersion") }
            result = [
                "supportedVersions": .array([.string(Self.present)]),
                "capabilities": Self.capabilities, "instructions": .string(instructions),
            ]
        case "tools/list": result = ["tools": .array(tools.map { .object($0.description) })]
        case "tools/call": result = try call(parameters)
        default: throw Failure(code: -32601, message: "Method not found", data: .string(method))
        }
        guard isPresent else { return result }
        result["resultType"] = .string("complete")
        if method != "tools/call" {
            result["ttlMs"] = .integer(Self.lasts)
            result["cacheScope"] = .string("public")
        }
        result["_meta"] = .object(["io.modelcontextprotocol/serverInfo": Self.name])
        return result
    }

    /// Whether a request is of the era without `initialize`.
    private static func isPresent(_ meta: JSONValue?) throws(Failure) -> Bool {
        guard let version = meta?["io.modelcontextprotocol/protocolVersion"] else { return false }
        guard version.isString(equalTo: present) else {
            throw Failure(
                code: -32022, message: "Unsupported protocol version",
                data: .object([
                    "supported": .array([.string(present)]), "requested": .string(version.stringValue ?? ""),
                ]))
        }
        guard meta?["io.modelcontextprotocol/clientCapabilities"] != nil else {
            throw .parameters("_meta has no io.modelcontextprotocol/clientCapabilities")
        }
        return true
    }

    private func call(_ parameters: JSONValue?) throws(Failure) -> JSONObject {
        guard let name = parameters?["name"]?.stringValue else { throw .parameters("params has no name of a tool") }
        guard let tool = tools.first(where: { $0.name == name }) else {
            throw .parameters("Unknown tool: \(name.printable)")
        }
        do throws(Complaint) {
            let content = JSON.object(try tool.call(parameters?["arguments"]))
            return ["content": Self.text(content.text), "structuredContent": content, "isError": .bool(false)]
        } catch {
            // In a result, so that the model sees it.
            return ["content": Self.text(error.message), "isError": .bool(true)]
        }
    }

    private static func text(_ text: String) -> JSON {
        .array([.object(["type": .string("text"), "text": .string(text)])])
    }
}

/// A tool that a model can call.
struct AgentTool {
    /// A member of the arguments or of the result.
    struct Field {
        enum Kind: String {
            case text = "string"
            case number
            case flag = "boolean"
            case object
            case list = "array"
        }

        let name: StaticString
        let kind: Kind
        let about: String
        /// Whether it must be there; in a result, whether it is never null.
        let isRequired: Bool

        init(_ name: StaticString, _ about: String, _ kind: Kind = .text, isRequired: Bool = false) {
            (self.name, self.kind, self.about, self.isRequired) = (name, kind, about, isRequired)
        }

        /// JSON Schema, draft 2020-12.
        /// - Parameter isNullable: Whether null stands for an absent value.
        func schema(isNullable: Bool) -> JSON {
            let type = JSON.string(kind.rawValue)
            return .object([
                "type": isNullable ? .array([type, .string("null")]) : type, "description": .string(about),
            ])
        }

        func isRight(_ value: JSONValue) -> Bool {
            switch kind {
            case .text: value.stringValue != nil
            case .number: value.number != nil
            case .flag: value.boolValue != nil
            case .object: value.objectValue != nil
            case .list: value.isArray
            }
        }
    }

    let name: String
    let about: String
    let arguments: [Field]
    let results: [Field]
    /// Whether it may reach out to the network.
    var isOpen = false
    /// Has the members of ``results``, and possibly others.
    let run: (JSONValue) throws(Complaint) -> JSONObject

    /// The entry of `tools/list`.
    var description: JSONObject {
        func members(_ fields: [Field], isNullable: Bool) -> JSON {
            var object = JSONObject()
            for field in fields {
                object["\(field.name)"] = field.schema(isNullable: isNullable && !field.isRequired)
            }
            return .object(object)
        }
        func names(_ fields: [Field]) -> JSON { .array(fields.map { .string("\($0.name)") }) }
        return [
            "name": .string(name), "description": .string(about),
            "inputSchema": .object([
                "type": .string("object"), "properties": members(arguments, isNullable: false),
                "required": names(arguments.filter(\.isRequired)), "additionalProperties": .bool(false),
            ]),
            "outputSchema": .object([
                "type": .string("object"), "properties": members(results, isNullable: true),
                "required": names(results),
            ]),
            "annotations": .object([
                "readOnlyHint": .bool(true), "destructiveHint": .bool(false), "idempotentHint": .bool(true),
                "openWorldHint": .bool(isOpen),
            ]),
        ]
    }

    /// Calls it with arguments that a client has not checked.
    func call(_ given: JSONValue?) throws(Complaint) -> JSONObject {
        let given = given.flatMap { $0.isNull ? nil : $0 } ?? JSONValue(.object([:]))
        func wrong(_ reason: String) -> Complaint {
            let names = arguments.map { "\($0.name) (\($0.kind.rawValue))" }
            return Complaint(
                word: "usage",
                message: "\(reason): \(name) takes \(names.isEmpty ? "no arguments" : names.joined(separator: ", ")).",
                status: ExitStatus.usage)
        }
        guard given.objectValue != nil else { throw wrong("The arguments are not an object") }
        for member in given.members {
            guard let field = arguments.first(where: { member.name.isString($0.name) }) else {
                throw wrong("'\(member.name.stringValue ?? "")' is no argument")
            }
            // Some hosts send null for what is left out.
            if member.value.isNull, !field.isRequired { continue }
            guard field.isRight(member.value) else { throw wrong("'\(field.name)' is not a \(field.kind.rawValue)") }
        }
        if let missing = arguments.first(where: { $0.isRequired && given[$0.name] == nil }) {
            throw wrong("'\(missing.name)' is missing")
        }
        return try run(given)
    }
}
