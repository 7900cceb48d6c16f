package import BTCPriceSocket

extension JSON {
    /// Parses a text into a tree of values.
    package init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        self.init(try JSONValue(parsing: Array(bytes)[...]))
    }

    package var stringValue: String? { if case .string(let value) = self { value } else { nil } }

    package var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }
}

extension JSONValue {
    /// The members of an object as a tree that can be changed.
    package var tree: JSONObject { JSON(self).objectValue ?? [:] }
}

extension JSONObject {
    /// The object as a parsed value.
    package var value: JSONValue { JSONValue(.object(self)) }
}
