import BTCPriceCore

/// A JSON pointer (RFC 6901): where a value is in a body, `/data/0/last`.
package struct JSONPointer: Sendable, Hashable, CustomStringConvertible {
    /// The names of members and the indices of elements, unescaped.
    package let tokens: [String]

    /// - Returns: `nil` if the text is neither empty nor begins with `/`, or has a `~` that is not part of `~0` or `~1` (section 3).
    package init?(_ text: String) {
        guard text.isEmpty || text.first == "/" else { return nil }
        var tokens: [String] = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            let texts = part.split(separator: "~", omittingEmptySubsequences: false)
            guard texts.dropFirst().allSatisfy({ $0.first == "0" || $0.first == "1" }) else { return nil }
            tokens.append(
                texts.dropFirst().reduce(into: String(texts[0])) {
                    $0 += ($1.first == "0" ? "~" : "/") + $1.dropFirst()
                })
        }
        self.tokens = tokens
    }

    /// A text as one token of a pointer.
    package static func escaped(_ text: String) -> String {
        text.escaped(["~": "~0", "/": "~1"])
    }

    /// The value at this place; `nil` if there is none (section 4).
    package func value(in document: JSONValue) -> JSONValue? {
        let (steps, value) = walk(document)
        return steps == tokens.count ? value : nil
    }

    /// The last value on the way that is there, and its place.
    package func nearest(in document: JSONValue) -> (place: JSONPointer, value: JSONValue) {
        let (steps, value) = walk(document)
        return (JSONPointer(Array(tokens.prefix(steps))), value)
    }

    /// Follows the tokens to the last value that is there.
    private func walk(_ document: JSONValue) -> (steps: Int, value: JSONValue) {
        var value = document
        for (steps, token) in tokens.enumerated() {
            guard let next = Self.child(token, of: value) else { return (steps, value) }
            value = next
        }
        return (tokens.count, value)
    }

    private init(_ tokens: [String]) {
        self.tokens = tokens
    }

    package var description: String { tokens.map { "/" + Self.escaped($0) }.joined() }

    /// The pointer for a message: the body's own is empty.
    package var described: String { tokens.isEmpty ? "the body" : description }

    private static func child(_ token: String, of value: JSONValue) -> JSONValue? {
        if value.isArray {
            // Without leading zeros and signs (section 4).
            guard let index = Int(token), "\(index)" == token else { return nil }
            return value.element(index)
        }
        return value.members.first { $0.name.isString(equalTo: token) }?.value
    }
}
