import Varlink

extension InterfaceDefinition {
    /// The definition without what its printer leaves out: the documentation of structures within fields.
    var asPrinted: InterfaceDefinition {
        var printed = self
        for index in printed.members.indices {
            switch printed.members[index].kind {
            case .type(.structure(let fields)): printed.members[index].kind = .type(.structure(fields.map(\.asPrinted)))
            case .type(let type): printed.members[index].kind = .type(type.undocumented)
            case .error(let fields): printed.members[index].kind = .error(fields.map(\.asPrinted))
            case .method(let parameters, let reply):
                printed.members[index].kind = .method(
                    parameters: parameters.map(\.asPrinted), reply: reply.map(\.asPrinted))
            }
        }
        return printed
    }
}

extension InterfaceDefinition.Field {
    fileprivate var asPrinted: Self {
        Self(documentation: documentation, name: name, type: type.undocumented)
    }
}

extension InterfaceDefinition.FieldType {
    fileprivate var undocumented: Self {
        switch self {
        case .bool, .int, .float, .string, .object, .named, .enumeration: self
        case .structure(let fields): .structure(fields.map { .init(name: $0.name, type: $0.type.undocumented) })
        case .array(let type): .array(type.undocumented)
        case .map(let type): .map(type.undocumented)
        case .optional(let type): .optional(type.undocumented)
        }
    }
}
