/// The definition of an interface (varlink.org, Interface Definition): its name, and its members in their order.
///
/// Parsed by ``init(parsing:)``, printed by ``description``.
package struct InterfaceDefinition: Sendable, Hashable {
    /// The type of a field.
    package indirect enum FieldType: Sendable, Hashable {
        /// `bool`
        case bool
        /// `int`, 64 bits
        case int
        /// `float`
        case float
        /// `string`
        case string
        /// `object`: any JSON value.
        case object
        /// A type that the interface defines.
        case named(String)
        /// `(a: T, b: T)`
        case structure([Field])
        /// `(a, b)`, sent as a string.
        case enumeration([String])
        /// `[]T`
        case array(FieldType)
        /// `[string]T`
        case map(FieldType)
        /// `?T`
        case optional(FieldType)
    }

    /// A field of a structure.
    package struct Field: Sendable, Hashable {
        /// The comment before it, a line each.
        package var documentation: [String]
        /// Its name.
        package var name: String
        /// Its type.
        package var type: FieldType

        /// Creates a field from its parts.
        package init(documentation: [String] = [], name: String, type: FieldType) {
            self.documentation = documentation
            self.name = name
            self.type = type
        }
    }

    /// A member of an interface.
    package struct Member: Sendable, Hashable {
        /// What it is.
        package enum Kind: Sendable, Hashable {
            /// `type`; a structure or an enumeration.
            case type(FieldType)
            /// `method`
            case method(parameters: [Field], reply: [Field])
            /// `error`
            case error([Field])
        }

        /// The comment before it, a line each.
        package var documentation: [String]
        /// Its name.
        package var name: String
        /// What it is.
        package var kind: Kind

        /// Creates a member from its parts.
        package init(documentation: [String] = [], name: String, kind: Kind) {
            self.documentation = documentation
            self.name = name
            self.kind = kind
        }
    }

    /// The comment before the interface, a line each.
    package var documentation: [String]
    /// `org.varlink.service`
    package var name: String
    /// The members in their order.
    package var members: [Member]

    /// Creates a definition from its parts.
    package init(documentation: [String] = [], name: String, members: [Member]) {
        self.documentation = documentation
        self.name = name
        self.members = members
    }

    /// The member with a name.
    package func member(_ name: some StringProtocol) -> Member? {
        members.first { $0.name == name }
    }
}
