import Varlink

extension String {
    /// The text with control characters (C0, DEL, C1) and characters that change the direction or break the line (Unicode Standard
    /// Annex 9) written as `\u{1b}`: a terminal would act on them or show text elsewhere.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isObeyed {
                text += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    fileprivate var isObeyed: Bool {
        switch value {
        case ..<0x20, 0x7F...0x9F, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

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
        // UnknownCurrency has no reason, but it lists the known currencies.
        let known = (parameters["known"]?.arrayValue ?? []).compactMap(\.stringValue).joined(separator: ", ")
        let currencies = parameters["currency"]?.stringValue.map { known.isEmpty ? $0 : "\($0), only in \(known)" }
        do throws(ClientError) {
            return try result().printable
        } catch {
            guard case .refused(let error, let reason) = error else { throw error }
            throw .refused(error: error.printable, reason: (reason ?? currencies)?.printable)
        }
    }
}

extension ClientConnection {
    /// Decodes a reply. The text of an error, which may have a key of the peer, is printable.
    func printableReply(_ message: ArraySlice<UInt8>) throws(ClientError) -> Reply {
        do throws(ClientError) {
            return try decoded(message)
        } catch {
            guard case .unintelligible(let path, let reason) = error else { throw error }
            throw .unintelligible(path: path, reason: reason.printable)
        }
    }
}
