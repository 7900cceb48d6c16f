/// What the placeholders of a description stand for.
struct Placeholders: Sendable {
    /// Those of a market's name.
    static let ofNames = ["BASE", "base", "QUOTE", "quote", "Quote"]
    /// Those of a URL.
    static let ofRequests = ofNames + ["name", "names"]
    /// Those of a place in a body.
    static let ofBodies = ofNames + ["name", "key"]

    private var values: [String: String]

    init(base: String, quote: String) {
        values = [
            "BASE": base, "base": base.lowercased(), "QUOTE": quote, "quote": quote.lowercased(),
            "Quote": quote.prefix(1) + quote.dropFirst().lowercased(),
        ]
    }

    subscript(name: String) -> String? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// A text with the values.
    /// - Parameter escape: Makes a value fit where it is put.
    func fill(_ text: String, escaping escape: (String) -> String = { $0 }) -> String {
        var filled = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            let name = String(rest[rest.index(after: open)..<close])
            filled += rest[..<open]
            filled += values[name].map(escape) ?? "{\(name)}"
            rest = rest[rest.index(after: close)...]
        }
        return filled + rest
    }

    /// The first placeholder in a text that is not one of these.
    static func unknown(in text: String, allowed: [String]) -> String? {
        text.matches(of: /\{([^{}]*)\}/).map { String($0.1) }.first { !allowed.contains($0) }
    }
}
