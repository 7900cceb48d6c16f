import BTCPriceSocket

/// The attributes of an XML document's elements, as JSON. Enough for the reference rates of a central bank: a document with a document
/// type is refused, and an element with a reference in its attributes is left out.
enum XMLAttributes {
    /// - Parameter element: The name of the elements.
    /// - Returns: An array with an object of each such element that has attributes, in their order: `[{"time": "2026-11-20"}, {"currency":
    ///   "CZK", "rate": "24.527"}]`; `nil` if there is none, or the document is not well formed.
    static func json(_ document: ArraySlice<UInt8>, of element: String) -> JSONValue? {
        var rest = document
        var rows: [UInt8] = []
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[(open + 1)...]
            if rest.starts(with: "!--".utf8) || rest.starts(with: "?".utf8) {
                let end = Array((rest.first == UInt8(ascii: "?") ? "?>" : "-->").utf8)
                guard let start = rest.indices.first(where: { rest[$0...].starts(with: end) }) else { return nil }
                rest = rest[(start + end.count)...]
                continue
            }
            guard rest.first != UInt8(ascii: "!"), let close = rest.firstIndex(of: UInt8(ascii: ">")) else {
                return nil
            }
            var tag = rest[..<close]
            rest = rest[(close + 1)...]
            if tag.last == UInt8(ascii: "/") { tag.removeLast() }
            let name = tag.prefix { !isSpace($0) }
            guard name.elementsEqual(element.utf8) else { continue }
            let start = rows.count
            if !write(tag[name.endIndex...], to: &rows) { rows.removeSubrange(start...) }
        }
        guard !rows.isEmpty else { return nil }
        rows.append(UInt8(ascii: "]"))
        // A name that occurs twice in an element is refused here.
        do { return try JSONValue(parsing: rows[...]) } catch { return nil }
    }

    /// Appends the attributes of an element to a JSON array that has no end.
    /// - Returns: Whether they are well formed.
    private static func write(_ text: ArraySlice<UInt8>, to rows: inout [UInt8]) -> Bool {
        var rest = text.drop(while: isSpace)
        var separator = rows.isEmpty ? "[{" : ",{"
        while !rest.isEmpty {
            let name = rest.prefix { !isSpace($0) && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...].drop(while: isSpace)
            guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else { return false }
            rest = rest.drop(while: isSpace)
            guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                let end = rest.firstIndex(of: quote), !rest[..<end].contains(UInt8(ascii: "&"))
            else { return false }
            rows += separator.utf8
            JSON.string(String(decoding: name, as: UTF8.self)).write(to: &rows)
            rows.append(UInt8(ascii: ":"))
            JSON.string(String(decoding: rest[..<end], as: UTF8.self)).write(to: &rows)
            separator = ","
            rest = rest[(end + 1)...].drop(while: isSpace)
        }
        if separator == "," { rows.append(UInt8(ascii: "}")) }
        return true
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
