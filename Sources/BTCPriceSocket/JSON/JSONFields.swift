/// A message as a table of its fields: each line writes a field and reads it.
package protocol JSONMessage {
    /// What is read into; the required fields are replaced.
    static var blank: Self { get }

    /// Visits the fields in the order of the definition.
    mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError)
}

extension JSONMessage {
    /// The message as JSON, with every field; `null` for a value that is absent.
    package var json: JSONObject {
        var (message, fields) = (self, JSONFields())
        // Writing does not fail.
        do { try message.visit(&fields) } catch {}
        return fields.object
    }

    /// Writes the message as an object, with every field; `null` for a value that is absent.
    /// - Parameter omitsAbsent: Whether an absent value is not written, rather than as null.
    package func write(to writer: inout JSONWriter, omitsAbsent: Bool = false) {
        writer.object { writer in
            var (message, fields) = (self, JSONFields(omitsAbsent: omitsAbsent))
            fields.isText = true
            // Swapped, so that the text is not copied.
            swap(&fields.writer, &writer)
            // Writing does not fail.
            do { try message.visit(&fields) } catch {}
            swap(&fields.writer, &writer)
        }
    }

    /// Reads the message. Unknown fields are ignored: newer programs may send them.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        self = .blank
        var fields = JSONFields(reading: json)
        try visit(&fields)
    }
}

/// Writes the fields of a message, or reads them.
package struct JSONFields {
    package private(set) var object = JSONObject()
    /// Whether the fields are written as text, to ``writer``, rather than to ``object``.
    fileprivate var isText = false
    fileprivate var writer = JSONWriter()
    /// What is read; `nil` to write.
    private let source: JSONValue?
    /// Whether an absent value is not written at all.
    private let omitsAbsent: Bool
    /// The fields that were read so far; `nil` if all others are ignored.
    private var visited: [StaticString]?

    /// - Parameter omitsAbsent: Whether an absent value is not written, rather than as null.
    package init(omitsAbsent: Bool = false) { (source, self.omitsAbsent) = (nil, omitsAbsent) }

    /// - Parameter isStrict: Whether ``refuseOthers()`` will be called.
    package init(reading source: JSONValue, isStrict: Bool = false) {
        (self.source, omitsAbsent, visited) = (source, false, isStrict ? [] : nil)
    }

    package var isReading: Bool { source != nil }

    /// A field that every message has.
    package mutating func required<Value>(
        _ name: StaticString, _ value: inout Value, _ kind: JSONKind<Value>
    ) throws(JSONFieldError) {
        guard let source else { return put(name, value, kind) }
        value = try source.required(name, kind)
    }

    /// A field that may be null or absent.
    package mutating func optional<Value>(
        _ name: StaticString, _ value: inout Value?, _ kind: JSONKind<Value>
    ) throws(JSONFieldError) {
        guard let source else {
            if value != nil || !omitsAbsent { put(name, value, kind) }
            return
        }
        visited?.append(name)
        value = try source.optional(name, kind)
    }

    /// A field that an older program does not send: then the value of the blank message stays.
    package mutating func added<Value>(
        _ name: StaticString, _ value: inout Value, _ kind: JSONKind<Value>
    ) throws(JSONFieldError) {
        var read = Optional(value)
        try optional(name, &read, kind)
        if let read { value = read }
    }

    /// A field that is less important than the others: if it can't be read, it counts as absent.
    package mutating func lenient<Value>(_ name: StaticString, _ value: inout Value?, _ kind: JSONKind<Value>) {
        do { try optional(name, &value, kind) } catch { value = nil }
    }

    /// Refuses every field that was not visited.
    package func refuseOthers() throws(JSONFieldError) {
        guard let source, let visited else { return }
        for (name, _) in source.members where !visited.contains(where: name.isString) {
            throw JSONFieldError(field: name.stringValue ?? "")
        }
    }

    /// A field that is written for its readers and follows from others.
    package mutating func derived(_ name: StaticString, _ value: @autoclosure () -> JSON) {
        guard source == nil else { return }
        if isText { writer.member(name.description, value()) } else { object.append(name.description, value()) }
    }

    private mutating func put<Value>(_ name: StaticString, _ value: Value?, _ kind: JSONKind<Value>) {
        guard isText else { return object.append(name.description, value.map(kind.write) ?? .null) }
        writer.name(ofField: name)
        guard let value else { return writer.write(.null) }
        if let writeText = kind.writeText { writeText(value, &writer) } else { writer.write(kind.write(value)) }
    }
}

/// How a value is written and read.
package struct JSONKind<Value> {
    package let write: (Value) -> JSON
    /// Writes the text without a tree; `nil` for a value that has none.
    fileprivate var writeText: ((Value, inout JSONWriter) -> Void)?
    /// Returns `nil` for a value of another type, or out of range.
    package let read: (JSONValue) throws(JSONFieldError) -> Value?

    package init(
        _ write: @escaping (Value) -> JSON, _ read: @escaping (JSONValue) throws(JSONFieldError) -> Value?
    ) {
        self.write = write
        self.read = read
    }

    /// The same, but only values that are valid.
    package func only(_ isValid: @escaping (Value) -> Bool) -> JSONKind {
        JSONKind(write) { (json) throws(JSONFieldError) in try read(json).flatMap { isValid($0) ? $0 : nil } }
    }

    /// The values of an array.
    package static func list<Element>(_ kind: JSONKind<Element>) -> JSONKind<[Element]> where Value == [Element] {
        JSONKind<[Element]>(
            { .array($0.map(kind.write)) },
            { (json) throws(JSONFieldError) in
                guard let elements = json.arrayValue else { return nil }
                var values: [Element] = []
                for element in elements {
                    guard let value = try kind.read(element) else { return nil }
                    values.append(value)
                }
                return values
            })
    }
}

extension JSONKind<String> {
    package static var text: JSONKind<String> { .init({ .string($0) }, \.stringValue) }
}

extension JSONKind<Int64> {
    package static var integer: JSONKind<Int64> { .init({ .integer($0) }, \.integerValue) }
}

extension JSONKind<JSONValue> {
    /// An object, unread.
    package static var object: JSONKind<JSONValue> { .init({ JSON($0) }, \.objectValue) }
}

extension JSONKind<Bool> {
    package static var flag: JSONKind<Bool> { .init({ .bool($0) }, \.boolValue) }
}

extension JSONKind<[String]> {
    package static var texts: JSONKind<[String]> { .list(.text) }
}

extension JSONKind where Value: RawRepresentable, Value.RawValue == String {
    /// One of several words.
    package static var choice: JSONKind<Value> {
        .init({ .string($0.rawValue) }, { $0.stringValue.flatMap(Value.init(rawValue:)) })
    }
}

extension JSONKind where Value: JSONMessage {
    package static var message: JSONKind<Value> {
        var kind = JSONKind(
            { .object($0.json) },
            { (json) throws(JSONFieldError) in
                try json.objectValue.map { (object) throws(JSONFieldError) in try Value(json: object) }
            })
        kind.writeText = { $0.write(to: &$1) }
        return kind
    }
}

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
