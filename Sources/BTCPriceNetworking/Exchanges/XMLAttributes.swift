import Varlink

/// The attributes of an XML document's elements, as JSON. Enough for the reference rates of a central bank: a document with references
/// or with a document type is refused.
enum XMLAttributes {
    /// - Parameter element: The name of the elements.
    /// - Returns: An array with an object of each such element that has attributes, in their order:
    ///   `[{"time": "2026-11-20"}, {"currency": "CZK", "rate": "24.527"}]`; `nil` if there is none, or the document is not
    ///   well formed.
    static func json(_ document: [UInt8], of element: String) -> JSONValue? {
        var rest = document[...]
        var rows: [JSON] = []
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[(open + 1)...]
            if rest.starts(with: "!--".utf8) || rest.starts(with: "?".utf8) {
                let end = Array((rest.first == UInt8(ascii: "?") ? "?>" : "-->").utf8)
                guard let range = rest.firstRange(of: end) else { return nil }
                rest = rest[range.upperBound...]
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
            guard let row = attributes(tag[name.endIndex...]) else { return nil }
            if !row.members.isEmpty { rows.append(.object(row)) }
        }
        guard !rows.isEmpty else { return nil }
        do { return try JSONValue(parsing: Array(JSON.array(rows).text.utf8)[...]) } catch { return nil }
    }

    private static func attributes(_ text: ArraySlice<UInt8>) -> JSONObject? {
        var object = JSONObject()
        var rest = text.drop(while: isSpace)
        while !rest.isEmpty {
            let name = rest.prefix { !isSpace($0) && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...].drop(while: isSpace)
            guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else { return nil }
            rest = rest.drop(while: isSpace)
            guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                let end = rest.firstIndex(of: quote), !rest[..<end].contains(UInt8(ascii: "&"))
            else { return nil }
            let key = String(decoding: name, as: UTF8.self)
            guard object[key] == nil else { return nil }
            object[key] = .string(String(decoding: rest[..<end], as: UTF8.self))
            rest = rest[(end + 1)...].drop(while: isSpace)
        }
        return object
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
