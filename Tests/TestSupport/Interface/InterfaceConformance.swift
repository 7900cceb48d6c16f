package import Varlink

/// The place at which a message differs from its interface's definition.
package struct ConformanceError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The field, from the outside in: `state.quote.value`.
    package let path: String
    /// The error.
    package let reason: String

    /// `state.quote.value: expected string`
    package var description: String { "\(path): \(reason)" }
}

extension InterfaceDefinition {
    /// Checks the fields of a message: every field that may not be null is present, every field has its type, and there is no other field.
    /// - Parameters:
    ///   - object: The message's parameters.
    ///   - fields: The fields of the definition.
    /// - Throws: ``ConformanceError`` for the first field that does not conform.
    package func check(_ object: JSONValue, _ fields: [Field]) throws(ConformanceError) {
        try check(object.tree, fields, at: "")
    }

    private func check(_ object: JSONObject, _ fields: [Field], at path: String) throws(ConformanceError) {
        let prefix = path.isEmpty ? "" : "\(path)."
        for member in object.members where !fields.contains(where: { $0.name == member.name }) {
            throw ConformanceError(path: "\(prefix)\(member.name)", reason: "not in the definition")
        }
        for field in fields { try check(object[field.name] ?? .null, field.type, at: "\(prefix)\(field.name)") }
    }

    private func check(_ value: JSON, _ type: FieldType, at path: String) throws(ConformanceError) {
        switch (type, value) {
        case (.optional, .null), (.bool, .bool), (.int, .integer), (.float, .integer), (.float, .number),
            (.string, .string):
            return
        case (.object, let value) where value != .null: return
        case (.optional(let type), _): try check(value, type, at: path)
        case (.enumeration(let cases), .string(let value)) where cases.contains(value): return
        case (.structure(let fields), .object(let object)): try check(object, fields, at: path)
        case (.array(let type), .array(let elements)):
            for (index, element) in elements.enumerated() { try check(element, type, at: "\(path)[\(index)]") }
        case (.map(let type), .object(let object)):
            for member in object.members { try check(member.value, type, at: "\(path).\(member.name)") }
        case (.named(let name), _):
            guard case .type(let type) = member(name)?.kind else {
                throw ConformanceError(path: path, reason: "of the type \(name), which is not defined")
            }
            try check(value, type, at: path)
        default: throw ConformanceError(path: path, reason: "expected \(type), not \(value.text)")
        }
    }
}
