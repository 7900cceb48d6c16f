/// An object that does not match its definition.
package struct JSONFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    package let field: String

    package init(field: String) {
        self.field = field
    }

    /// `the field 'tick' is missing or not valid`
    package var description: String { "the field '\(field)' is missing or not valid" }
}

extension JSONValue {
    /// The value of a field that may be null or absent.
    /// - Throws: ``JSONFieldError`` if it is of the wrong type.
    package func optional<Value>(
        _ field: StaticString, _ kind: JSONKind<Value>
    ) throws(JSONFieldError) -> Value? {
        guard let member = self[field], !member.isNull else { return nil }
        guard let value = try kind.read(member) else { throw JSONFieldError(field: field.description) }
        return value
    }

    /// The value of a field.
    /// - Throws: ``JSONFieldError`` if it is missing or of the wrong type.
    package func required<Value>(_ field: StaticString, _ kind: JSONKind<Value>) throws(JSONFieldError) -> Value {
        guard let value = try optional(field, kind) else { throw JSONFieldError(field: field.description) }
        return value
    }
}

extension JSON {
    package static func optional(_ value: Int64?) -> JSON { value.map { .integer($0) } ?? .null }

    package static func optional(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
}
