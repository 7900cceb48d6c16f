/// A value before it is checked.
package enum RawValue: Sendable, Hashable {
    /// A value from the environment or the command line, or a string in the file.
    case text(String)
    case integer(Int)
    case flag(Bool)
    case list([String])
    /// A value in the file that no setting accepts, as the name of its type.
    case other(String)
}

extension RawValue: CustomStringConvertible {
    /// The value in the syntax of the file.
    package var description: String {
        switch self {
        case .text(let text): Self.quoted(text)
        case .integer(let number): "\(number)"
        case .flag(let isOn): "\(isOn)"
        case .list(let elements): "[\(elements.map(Self.quoted).joined(separator: ", "))]"
        // Only an empty one is a value.
        case .other("table"): "{}"
        case .other(let type): "a \(type)"
        }
    }

    /// A TOML string, always on one line.
    private static func quoted(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\\", "\"": return "\\\(scalar)"
            case "\0"..<" ", "\u{7F}":
                let digits = String(scalar.value, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: return String(scalar)
            }
        }
        return "\"\(escaped.joined())\""
    }
}
