import BTCPriceCore

extension JSON {
    fileprivate var printable: JSON {
        switch self {
        case .string(let text): .string(text.printable)
        case .array(let elements): .array(elements.map(\.printable))
        case .object(let object): .object(object.printable)
        case .null, .bool, .integer, .number: self
        }
    }
}

extension JSONObject {
    /// The object with every string made ``Swift/String/printable``. Of names that become the same, the first one is kept.
    fileprivate var printable: JSONObject {
        var object = JSONObject()
        var names: Set<String> = []
        for member in members {
            let name = member.name.printable
            if names.insert(name).inserted { object.append(name, member.value.printable) }
        }
        return object
    }
}

extension JSONValue {
    /// The value with every string made ``Swift/String/printable``.
    fileprivate var printable: JSONValue {
        // Without an escape, only DEL and non-ASCII characters can affect a terminal.
        let mayBeObeyed = text.contains { $0 == UInt8(ascii: "\\") || $0 >= 0x7F }
        return mayBeObeyed ? JSONValue(JSON(self).printable) : self
    }
}

extension Reply {
    /// The parameters, printable.
    /// - Throws: ``ClientError/refused(error:reason:)``, printable too.
    func printableResult() throws(ClientError) -> JSONValue {
        guard let error else { return parameters.printable }
        // UnknownCurrency and UnknownSource have no reason, but they list what is known.
        let known = (parameters["known"]?.arrayValue ?? []).compactMap(\.stringValue).joined(separator: ", ")
        let currencies = parameters["currency"]?.stringValue.map { known.isEmpty ? $0 : "\($0), only in \(known)" }
        let sources = parameters["source"]?.stringValue.map {
            "'\($0)' can't be retried or switched; these can: \(known)"
        }
        // TooManyConnections has a limit with a name.
        let limit = parameters["limit"]?.stringValue.map { "\($0) is \(parameters["most"]?.integerValue ?? 0)" }
        let reason = parameters["reason"]?.stringValue ?? currencies ?? sources ?? limit
        throw .refused(error: error.printable, reason: reason?.printable)
    }
}
