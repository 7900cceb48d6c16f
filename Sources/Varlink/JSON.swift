/// A JSON value (RFC 8259), as a Varlink message holds it.
///
/// Of our own since the wire needs what a general decoder hides: keys in their order, duplicate keys as an error (the
/// specification of Varlink and systemd's implementation refuse them), numbers without a detour through binary
/// floating point, a bound on nesting, and no cost beyond the value's own.
public enum JSON: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, as it was written.
    case number(String)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object.
    case object(JSONObject)

    /// The string in it, if it is one.
    public var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer in it, if it is one.
    public var integerValue: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The truth value in it, if it is one.
    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The elements in it, if it is an array.
    public var arrayValue: [JSON]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The object in it, if it is one.
    public var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }
}

/// The members of a JSON object in their order; no name occurs twice.
public struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// A name with its value.
    public struct Member: Sendable, Hashable {
        /// The name.
        public let name: String
        /// The value.
        public var value: JSON
    }

    /// The members in their order.
    public private(set) var members: [Member] = []

    /// An object without members.
    public init() {}

    /// The members in the order they are written in.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// The value of a member. Setting `nil` removes it; a new one goes to the end.
    public subscript(name: String) -> JSON? {
        get { members.first { $0.name == name }?.value }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Adds a member that is known to be new.
    mutating func append(_ name: String, _ value: JSON) {
        members.append(Member(name: name, value: value))
    }
}
