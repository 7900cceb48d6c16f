import FoundationEssentials
import Varlink

/// A JSON value as Foundation's decoder reads it. Numbers are compared as `Double`, which is all that it shows of some.
indirect enum Independent: Equatable, Decodable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([Independent])
    case object([String: Independent])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([Independent].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: Independent].self))
        }
    }

    init(_ value: JSON) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .number(Double("\(value)") ?? .nan)
        case .number(let text): self = .number(Double(text) ?? .nan)
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map(Independent.init))
        case .object(let object):
            self = .object(
                Dictionary(
                    object.members.map { ($0.name, Independent($0.value)) }, uniquingKeysWith: { first, _ in first }))
        }
    }
}

/// What Foundation's decoder makes of a text; `nil` if it refuses it.
func independent(_ input: [UInt8]) -> Independent? {
    try? JSONDecoder().decode(Independent.self, from: Data(input))
}

extension JSON {
    /// Whether Foundation's decoder refuses a value although RFC 8259 allows it: a number beyond a `Double`, and names that only look the same,
    /// which are one in its dictionary.
    var isBeyondTheirs: Bool {
        switch self {
        case .number(let text): Double(text).map { !$0.isFinite || $0 == 0 } ?? true
        case .integer, .null, .bool, .string: false
        case .array(let elements): elements.contains(where: \.isBeyondTheirs)
        case .object(let object):
            object.members.contains(where: \.value.isBeyondTheirs)
                || Set(object.members.map(\.name)).count < object.members.count
        }
    }
}
