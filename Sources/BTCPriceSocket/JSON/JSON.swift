/// A JSON value (RFC 8259) to write. ``JSONValue`` is a parsed one.
///
/// Members keep their order, and numbers never pass through binary floating point.
package enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, as written.
    case number(String)
    case string(String)
    case array([JSON])
    case object(JSONObject)
}

/// The members of a JSON object, in order. Names are unique.
package struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    package struct Member: Sendable, Hashable {
        package let name: String
        package var value: JSON
    }

    package private(set) var members: [Member] = []

    package init() {}

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
