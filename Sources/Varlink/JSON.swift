/// A JSON value (RFC 8259) to be written. ``JSONValue`` is one that was read.
///
/// Members keep their order, and numbers never pass through binary floating point.
package enum JSON: Sendable, Hashable {
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
    package var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer in it, if it is one.
    package var integerValue: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The truth value in it, if it is one.
    package var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The elements in it, if it is an array.
    package var arrayValue: [JSON]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The object in it, if it is one.
    package var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }
}

/// The members of a JSON object in their order; no name occurs twice.
package struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// A name with its value.
    package struct Member: Sendable, Hashable {
        /// The name.
        package let name: String
        /// The value.
        package var value: JSON
    }

    /// The members in their order.
    package private(set) var members: [Member] = []

    /// An object without members.
    package init() {}

    /// The members in the order they are written in.
    package init(dictionaryLiteral elements: (String, JSON)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// The value of a member. Setting `nil` removes it; a new one goes to the end.
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

    /// Adds a member that is known to be new.
    mutating func append(_ name: String, _ value: JSON) {
        members.append(Member(name: name, value: value))
    }
}
