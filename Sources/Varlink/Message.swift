/// Why a message is not one of Varlink's.
public struct MessageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    public let reason: String

    /// What is wrong.
    public var description: String { reason }

    init(_ reason: String) {
        self.reason = reason
    }
}

/// A method call (varlink.org, Method-Call).
public struct Call: Sendable, Hashable {
    /// The method with its interface: `org.varlink.service.GetInfo`.
    public var method: String
    /// The parameters; absent, null and `{}` are the same.
    public var parameters: JSONObject
    /// No reply is wanted.
    public var oneway: Bool
    /// More than one reply is wanted.
    public var more: Bool
    /// The connection is to be handed over to another protocol.
    public var upgrade: Bool

    /// A call of which every part is given.
    public init(
        method: String, parameters: JSONObject = [:], oneway: Bool = false, more: Bool = false, upgrade: Bool = false
    ) {
        self.method = method
        self.parameters = parameters
        self.oneway = oneway
        self.more = more
        self.upgrade = upgrade
    }

    /// Reads a call. As strict as systemd's implementation (sd-varlink.c): a message that is refused here ends the connection.
    /// - Parameter bytes: One message, without its NUL.
    /// - Throws: ``MessageError`` for bad JSON, an unknown key, a wrong type, and for two of the three flags at once.
    public init(decoding bytes: some Collection<UInt8>) throws(MessageError) {
        self.init(method: "")
        for member in try topLevel(bytes).members {
            switch (member.name, member.value) {
            case ("method", .string(let value)): method = value
            case ("parameters", .object(let value)): parameters = value
            case ("parameters", .null): break
            case ("oneway", .bool(let value)): oneway = value
            case ("more", .bool(let value)): more = value
            case ("upgrade", .bool(let value)): upgrade = value
            case ("method", _), ("parameters", _), ("oneway", _), ("more", _), ("upgrade", _):
                throw MessageError("the wrong type for '\(member.name)'")
            default: throw MessageError("an unknown key '\(member.name)'")
            }
        }
        guard !method.isEmpty else { throw MessageError("no method") }
        guard [oneway, more, upgrade].count(where: { $0 }) <= 1 else {
            throw MessageError("two of 'oneway', 'more' and 'upgrade' at once")
        }
    }

    /// The interface and the method's own name; `nil` where there is no dot between them.
    public var target: (interface: Substring, name: Substring)? {
        guard let dot = method.utf8.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        return (method[..<dot], method[method.utf8.index(after: dot)...])
    }

    /// The call as bytes, its NUL included. Flags that are not set are left out.
    public func encoded() -> [UInt8] {
        var object: JSONObject = ["method": .string(method)]
        if !parameters.members.isEmpty { object["parameters"] = .object(parameters) }
        if oneway { object["oneway"] = .bool(true) }
        if more { object["more"] = .bool(true) }
        if upgrade { object["upgrade"] = .bool(true) }
        return framed(object)
    }
}

/// A reply to a call.
public struct Reply: Sendable, Hashable {
    /// The parameters of the reply or of the error.
    public var parameters: JSONObject
    /// Another reply to the same call will follow.
    public var continues: Bool
    /// The error's fully qualified name, where the call failed.
    public var error: String?

    /// A reply of which every part is given.
    public init(parameters: JSONObject = [:], continues: Bool = false, error: String? = nil) {
        self.parameters = parameters
        self.continues = continues
        self.error = error
    }

    /// Reads a reply.
    /// - Parameter bytes: One message, without its NUL.
    /// - Throws: ``MessageError`` for bad JSON, an unknown key and a wrong type.
    public init(decoding bytes: some Collection<UInt8>) throws(MessageError) {
        self.init()
        for member in try topLevel(bytes).members {
            switch (member.name, member.value) {
            case ("parameters", .object(let value)): parameters = value
            case ("parameters", .null), ("error", .null): break
            case ("continues", .bool(let value)): continues = value
            case ("error", .string(let value)): error = value
            default: throw MessageError("an unknown key or a wrong type: '\(member.name)'")
            }
        }
    }

    /// The reply as bytes, its NUL included. Exactly the keys that systemd's client accepts.
    public func encoded() -> [UInt8] {
        var object: JSONObject = [:]
        if let error { object["error"] = .string(error) }
        object["parameters"] = .object(parameters)
        if continues { object["continues"] = .bool(true) }
        return framed(object)
    }
}

private func topLevel(_ bytes: some Collection<UInt8>) throws(MessageError) -> JSONObject {
    let value: JSON
    do {
        value = try JSON(parsing: bytes)
    } catch {
        throw MessageError("not JSON: \(error)")
    }
    guard case .object(let object) = value else { throw MessageError("not an object") }
    return object
}

private func framed(_ object: JSONObject) -> [UInt8] {
    var bytes: [UInt8] = []
    object.write(to: &bytes)
    bytes.append(0)
    return bytes
}
