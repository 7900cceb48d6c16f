extension InterfaceDefinition: CustomStringConvertible {
    /// The definition as text. Each definition has one form, and parsing it gives the same definition.
    package var description: String {
        var text = Self.comment(documentation, indent: "")
        text += "interface \(name)\n"
        for member in members { text += "\n\(member)\n" }
        return text
    }

    fileprivate static func comment(_ lines: [String], indent: String) -> String {
        lines.map { $0.isEmpty ? "\(indent)#\n" : "\(indent)# \($0)\n" }.joined()
    }
}

extension InterfaceDefinition.Member: CustomStringConvertible {
    /// The longest declaration on one line.
    private static let width = 100

    /// The member as text with its documentation, without a newline at the end.
    package var description: String {
        InterfaceDefinition.comment(documentation, indent: "") + declaration
    }

    private var declaration: String {
        switch kind {
        case .type(.structure(let fields)): return "type \(name) \(Self.tall(fields, indent: ""))"
        case .type(let type): return "type \(name) \(type)"
        case .error(let fields): return "error \(name) \(Self.fitting(fields, after: name.count + 7))"
        case .method(let parameters, let reply):
            let start = "method \(name)\(Self.fitting(parameters, after: name.count + 7)) -> "
            let last = start.split(separator: "\n").last ?? ""
            return start + Self.fitting(reply, after: last.count)
        }
    }

    private static func fitting(_ fields: [InterfaceDefinition.Field], after column: Int) -> String {
        let wide = InterfaceDefinition.FieldType.structure(fields).description
        let isUndocumented = fields.allSatisfy { $0.documentation.isEmpty }
        return isUndocumented && column + wide.count <= width ? wide : tall(fields, indent: "")
    }

    private static func tall(_ fields: [InterfaceDefinition.Field], indent: String) -> String {
        guard !fields.isEmpty else { return "()" }
        let lines = fields.map { field in
            InterfaceDefinition.comment(field.documentation, indent: "\(indent)  ")
                + "\(indent)  \(field.name): \(field.type)"
        }
        return "(\n\(lines.joined(separator: ",\n"))\n\(indent))"
    }
}

extension InterfaceDefinition.FieldType: CustomStringConvertible {
    /// The type as text on one line, without the documentation of the fields of an inner structure.
    package var description: String {
        switch self {
        case .bool: "bool"
        case .int: "int"
        case .float: "float"
        case .string: "string"
        case .object: "object"
        case .named(let name): name
        case .structure(let fields): "(\(fields.map { "\($0.name): \($0.type)" }.joined(separator: ", ")))"
        case .enumeration(let cases): "(\(cases.joined(separator: ", ")))"
        case .array(let type): "[]\(type)"
        case .map(let type): "[string]\(type)"
        case .optional(let type): "?\(type)"
        }
    }
}
