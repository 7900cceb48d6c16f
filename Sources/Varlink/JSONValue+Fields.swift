/// An object that does not match its definition.
package struct JSONFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The field that is missing or wrong.
    package let field: String

    /// - Parameter field: The field that is missing or wrong.
    package init(field: String) {
        self.field = field
    }

    /// `the field 'tick' is missing or of the wrong type`
    package var description: String { "the field '\(field)' is missing or of the wrong type" }
}

extension JSONValue {
    /// The value of a field that may be null or absent.
    /// - Throws: ``JSONFieldError`` if it is of the wrong type.
    package func optional<Value>(
        _ field: StaticString, _ value: (JSONValue) -> Value?
    ) throws(JSONFieldError) -> Value? {
        guard let member = self[field], !member.isNull else { return nil }
        guard let found = value(member) else { throw JSONFieldError(field: "\(field)") }
        return found
    }

    /// The value of a field.
    /// - Throws: ``JSONFieldError`` if it is missing or of the wrong type.
    package func required<Value>(_ field: StaticString, _ value: (JSONValue) -> Value?) throws(JSONFieldError) -> Value
    {
        guard let found = try optional(field, value) else { throw JSONFieldError(field: "\(field)") }
        return found
    }

    /// The value of a field that names a case, and may be null or absent.
    package func choice<Value: RawRepresentable<String>>(
        _ field: StaticString, optional: Value.Type
    ) throws(JSONFieldError) -> Value? {
        try self.optional(field) { $0.stringValue.flatMap(Value.init(rawValue:)) }
    }

    /// The value of a field that names a case.
    package func choice<Value: RawRepresentable<String>>(
        _ field: StaticString, required: Value.Type
    ) throws(JSONFieldError) -> Value {
        try self.required(field) { $0.stringValue.flatMap(Value.init(rawValue:)) }
    }

    /// The elements of an array of strings.
    package func texts(_ field: StaticString) throws(JSONFieldError) -> [String] { try required(field, \.textsValue) }

    /// The elements of an array of strings; `nil` for any other value.
    package var textsValue: [String]? {
        let texts = arrayValue?.map(\.stringValue)
        let strings = texts?.compactMap(\.self)
        return strings?.count == texts?.count ? strings : nil
    }

    /// The elements of an array of objects, each read by `read`.
    /// - Throws: ``JSONFieldError`` if the field or one of them is missing or of the wrong type.
    package func list<Value>(
        _ field: StaticString, _ read: (JSONValue) throws(JSONFieldError) -> Value
    ) throws(JSONFieldError) -> [Value] {
        var values: [Value] = []
        for element in try required(field, \.arrayValue) {
            guard let object = element.objectValue else { throw JSONFieldError(field: "\(field)") }
            values.append(try read(object))
        }
        return values
    }
}

extension JSON {
    /// An integer, or null.
    package static func optional(_ value: Int64?) -> JSON { value.map { .integer($0) } ?? .null }

    /// A string, or null.
    package static func optional(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
}
