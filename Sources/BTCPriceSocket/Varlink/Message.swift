/// Why a message is not valid Varlink.
package struct MessageError: Error, Sendable, Hashable, CustomStringConvertible {
    package let reason: String

    package var description: String { reason }
}

/// A method call (varlink.org, Method-Call).
package struct Call: Sendable, Hashable {
    /// The method with its interface: `org.varlink.service.GetInfo`.
    package var method: String
    /// The parameters; absent, null and `{}` are the same.
    package var parameters: JSONValue
    /// Whether no reply is wanted.
    package var oneway: Bool
    /// Whether more than one reply is wanted.
    package var more: Bool
    /// Whether the connection is to switch to another protocol.
    package var upgrade: Bool

    package init(
        method: String, parameters: JSONObject = [:], oneway: Bool = false, more: Bool = false, upgrade: Bool = false
    ) {
        self.method = method
        self.parameters = JSONValue(.object(parameters))
        self.oneway = oneway
        self.more = more
        self.upgrade = upgrade
    }

    /// Decodes a call, as strictly as systemd (sd-varlink.c): an invalid message ends the connection.
    /// - Parameter bytes: One message, without its NUL.
    /// - Throws: ``MessageError`` for invalid JSON, an unknown key, a wrong type, or two of the three flags at once.
    package init(decoding bytes: ArraySlice<UInt8>) throws(MessageError) {
        let message = try topLevel(bytes)
        (method, parameters, oneway, more, upgrade) = ("", .emptyObject, false, false, false)
        for (name, value) in message.members {
            if name.isString("method"), let text = value.stringValue {
                method = text
            } else if name.isString("parameters"), value.isNull || value.objectValue != nil {
                if !value.isNull { parameters = value }
            } else if name.isString("oneway"), let flag = value.boolValue {
                oneway = flag
            } else if name.isString("more"), let flag = value.boolValue {
                more = flag
            } else if name.isString("upgrade"), let flag = value.boolValue {
                upgrade = flag
            } else {
                throw MessageError(reason: "an unknown key or a wrong type: '\(name.stringValue ?? "")'")
            }
        }
        guard !method.isEmpty else { throw MessageError(reason: "no method") }
        guard [oneway, more, upgrade].count(where: { $0 }) <= 1 else {
            throw MessageError(reason: "two of 'oneway', 'more' and 'upgrade' at once")
        }
    }

    /// The method's interface: the part before the last dot; `nil` if there is no dot.
    package var interface: Substring? {
        method.utf8.lastIndex(of: UInt8(ascii: ".")).map { method[..<$0] }
    }

    /// The encoded call, NUL included. Flags that are not set are left out.
    package func encoded() -> [UInt8] {
        var bytes = Array("{\"method\":".utf8)
        JSON.string(method).write(to: &bytes)
        if !parameters.members.isEmpty { bytes.append(contentsOf: Array(",\"parameters\":".utf8) + parameters.text) }
        if oneway { bytes.append(contentsOf: ",\"oneway\":true".utf8) }
        if more { bytes.append(contentsOf: ",\"more\":true".utf8) }
        if upgrade { bytes.append(contentsOf: ",\"upgrade\":true".utf8) }
        bytes.append(contentsOf: "}\0".utf8)
        return bytes
    }
}

package struct Reply: Sendable, Hashable {
    /// The parameters of the reply or of the error.
    package var parameters: JSONValue
    /// Whether another reply to the same call will follow.
    package var continues: Bool
    /// The error's fully qualified name, if the call failed.
    package var error: String?

    package init(parameters: JSONObject = [:], continues: Bool = false, error: String? = nil) {
        self.init(parameters: JSONValue(.object(parameters)), continues: continues, error: error)
    }

    /// - Parameter parameters: An object.
    init(parameters: JSONValue, continues: Bool = false, error: String? = nil) {
        self.parameters = parameters
        self.continues = continues
        self.error = error
    }

    /// Decodes a reply.
    /// - Parameter bytes: One message, without its NUL.
    /// - Throws: ``MessageError`` for invalid JSON, an unknown key or a wrong type.
    package init(decoding bytes: ArraySlice<UInt8>) throws(MessageError) {
        let message = try topLevel(bytes)
        (parameters, continues) = (.emptyObject, false)
        for (name, value) in message.members {
            if name.isString("parameters"), value.isNull || value.objectValue != nil {
                if !value.isNull { parameters = value }
            } else if name.isString("continues"), let flag = value.boolValue {
                continues = flag
            } else if name.isString("error"), value.isNull || value.rawString != nil {
                error = value.stringValue
            } else {
                throw MessageError(reason: "an unknown key or a wrong type: '\(name.stringValue ?? "")'")
            }
        }
    }

    /// The encoded reply, NUL included, with exactly the keys that systemd's client accepts.
    package func encoded() -> [UInt8] {
        var bytes = Array("{".utf8)
        if let error {
            bytes.append(contentsOf: "\"error\":".utf8)
            JSON.string(error).write(to: &bytes)
            bytes.append(UInt8(ascii: ","))
        }
        bytes.append(contentsOf: "\"parameters\":".utf8)
        bytes.append(contentsOf: parameters.text)
        if continues { bytes.append(contentsOf: ",\"continues\":true".utf8) }
        bytes.append(contentsOf: "}\0".utf8)
        return bytes
    }
}

extension JSONValue {
    fileprivate static let emptyObject = JSONValue(.object([:]))
}

private func topLevel(_ bytes: ArraySlice<UInt8>) throws(MessageError) -> JSONValue {
    let value: JSONValue
    do {
        value = try JSONValue(parsing: bytes)
    } catch {
        throw MessageError(reason: "not JSON: \(error)")
    }
    guard value.objectValue != nil else { throw MessageError(reason: "not an object") }
    return value
}
