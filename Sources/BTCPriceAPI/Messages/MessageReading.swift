import BTCPriceCore
import FoundationEssentials
public import Varlink

/// A message that does not follow the interface's definition.
public struct MessageFieldError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The field that is missing or wrong.
    public let field: String

    /// `the field 'tick' is missing or of the wrong type`
    public var description: String { "the field '\(field)' is missing or of the wrong type" }
}

extension JSONObject {
    /// The value of a field that may be null or absent.
    /// - Throws: ``MessageFieldError`` where it is of the wrong type.
    public func optional<Value>(_ field: String, _ value: (JSON) -> Value?) throws(MessageFieldError) -> Value? {
        guard let member = self[field], member != .null else { return nil }
        guard let found = value(member) else { throw MessageFieldError(field: field) }
        return found
    }

    /// The value of a field.
    /// - Throws: ``MessageFieldError`` where it is missing or of the wrong type.
    public func required<Value>(_ field: String, _ value: (JSON) -> Value?) throws(MessageFieldError) -> Value {
        guard let found = try optional(field, value) else { throw MessageFieldError(field: field) }
        return found
    }

    func choice<Value: RawRepresentable<String>>(
        _ field: String, optional: Value.Type
    ) throws(MessageFieldError) -> Value? {
        try self.optional(field) { $0.stringValue.flatMap(Value.init(rawValue:)) }
    }

    func choice<Value: RawRepresentable<String>>(
        _ field: String, required: Value.Type
    ) throws(MessageFieldError) -> Value {
        try self.required(field) { $0.stringValue.flatMap(Value.init(rawValue:)) }
    }

    /// An exact decimal.
    func decimal(_ field: String) throws(MessageFieldError) -> Decimal {
        try required(field) { $0.stringValue.flatMap { Decimal(exactly: $0) } }
    }

    /// A price.
    func price(_ field: String) throws(MessageFieldError) -> Decimal {
        let price = try decimal(field)
        guard price > 0 else { throw MessageFieldError(field: field) }
        return price
    }

    /// The elements of an array of strings.
    public func texts(_ field: String) throws(MessageFieldError) -> [String] {
        try required(field) { value in
            let texts = value.arrayValue?.map(\.stringValue)
            let strings = texts?.compactMap(\.self)
            return strings?.count == texts?.count ? strings : nil
        }
    }

    /// The elements of an array of objects, each read by `read`.
    /// - Throws: ``MessageFieldError`` where the field or one of them is missing or of the wrong type.
    public func list<Value>(
        _ field: String, _ read: (JSONObject) throws(MessageFieldError) -> Value
    ) throws(MessageFieldError) -> [Value] {
        var values: [Value] = []
        for element in try required(field, \.arrayValue) {
            guard let object = element.objectValue else { throw MessageFieldError(field: field) }
            values.append(try read(object))
        }
        return values
    }
}

extension JSON {
    /// An integer, or null.
    static func optional(_ value: Int64?) -> JSON { value.map { .integer($0) } ?? .null }

    /// A string, or null.
    static func optional(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
}
