/// A JSON value (RFC 8259) to write. ``JSONValue`` is a parsed one.
///
/// Members keep their order, and numbers never pass through binary floating point.
package enum JSON: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, as written.
    case number(String)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object.
    case object(JSONObject)

    /// The string; `nil` for any other value.
    package var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer; `nil` for any other value.
    package var integerValue: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The truth value; `nil` for any other value.
    package var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The elements of an array; `nil` for any other value.
    package var arrayValue: [JSON]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The object; `nil` for any other value.
    package var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }
}

/// The members of a JSON object, in order. Names are unique.
package struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// A name with its value.
    package struct Member: Sendable, Hashable {
        package let name: String
        package var value: JSON
    }

    /// The members in their order.
    package private(set) var members: [Member] = []

    /// An object without members.
    package init() {}

    /// The members in the order of the literal, whose names are unique.
    package init(dictionaryLiteral elements: (String, JSON)...) {
        members = elements.map { Member(name: $0, value: $1) }
    }

    /// The value of a member. Setting `nil` removes the member. A new member goes to the end.
    package subscript(name: String) -> JSON? {
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

    /// Adds a member whose name is known to be new. Setting it would compare the name with all others.
    package mutating func append(_ name: String, _ value: JSON) {
        members.append(Member(name: name, value: value))
    }
}
