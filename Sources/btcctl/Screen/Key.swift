/// A key that was pressed, or a reply of the terminal, which arrives in the same way.
enum Key: Equatable {
    case character(Character)
    case tab
    case backTab
    case left
    case right
    case up
    case down
    case pageUp
    case pageDown
    case home
    case end
    case escape
    /// Ctrl-L: the screen is to be drawn again.
    case redraw
    /// Whether the terminal knows a mode of its own (DECRPM): 1 or 2 if it can be set and reset.
    case mode(Int, state: Int)
    /// A key without a meaning here.
    case other
}

/// Reads keys from the bytes of a terminal: ASCII characters, and the sequences of ECMA-48 and xterm. A pure value.
struct KeyReader {
    /// The beginning of a sequence whose rest has not arrived.
    private var pending: [UInt8] = []
    private static let escape: UInt8 = 0x1B

    /// - Returns: The keys that are complete.
    mutating func keys(in bytes: [UInt8]) -> [Key] {
        var rest = (pending + bytes)[...]
        var keys: [Key] = []
        while let first = rest.first {
            guard first == Self.escape else {
                keys.append(Self.key(first))
                rest = rest.dropFirst()
                continue
            }
            guard let (key, length) = Self.sequence(rest) else { break }
            keys.append(key)
            rest = rest.dropFirst(length)
        }
        // Nobody presses a key whose sequence is as long.
        pending = rest.count > 32 ? [] : Array(rest)
        return keys
    }

    /// The key Escape, if its byte came alone; the terminal sends a sequence at once. Call it when nothing follows for a moment.
    mutating func escapeIfAlone() -> Key? {
        guard pending == [Self.escape] else { return nil }
        pending = []
        return .escape
    }

    private static func key(_ byte: UInt8) -> Key {
        switch byte {
        case 0x09: .tab
        case 0x0C: .redraw
        case 0x20...0x7E: .character(Character(Unicode.Scalar(byte)))
        default: .other
        }
    }

    /// The key of a sequence and its length; `nil` if the sequence is not complete.
    private static func sequence(_ bytes: ArraySlice<UInt8>) -> (Key, length: Int)? {
        let body = bytes.dropFirst()
        guard let kind = body.first else { return nil }
        switch kind {
        case UInt8(ascii: "O"):
            // SS3: arrows in the application mode of the cursor keys.
            return body.dropFirst().first.map { (cursor($0), 3) }
        case UInt8(ascii: "["):
            let text = body.dropFirst()
            // CSI: parameters and intermediate bytes, up to the final byte.
            guard let end = text.firstIndex(where: { 0x40...0x7E ~= $0 }) else { return nil }
            let parameters = text[..<end].split(whereSeparator: { !(0x30...0x39 ~= $0) }).map { digits in
                digits.prefix(6).reduce(0) { $0 * 10 + Int($1 - 0x30) }
            }
            return (key(text[end], parameters, isPrivate: text.first == UInt8(ascii: "?")), end - bytes.startIndex + 1)
        // Escape twice, or with another key: Alt.
        case escape: return (.escape, 1)
        default: return (.other, 2)
        }
    }

    private static func key(_ final: UInt8, _ parameters: [Int], isPrivate: Bool) -> Key {
        switch (final, parameters.first) {
        case (UInt8(ascii: "y"), let mode?) where isPrivate && parameters.count == 2: .mode(mode, state: parameters[1])
        case (UInt8(ascii: "Z"), _): .backTab
        case (UInt8(ascii: "~"), 1), (UInt8(ascii: "~"), 7): .home
        case (UInt8(ascii: "~"), 4), (UInt8(ascii: "~"), 8): .end
        case (UInt8(ascii: "~"), 5): .pageUp
        case (UInt8(ascii: "~"), 6): .pageDown
        case _ where !isPrivate: cursor(final)
        default: .other
        }
    }

    private static func cursor(_ final: UInt8) -> Key {
        switch final {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "H"): .home
        default: .other
        }
    }
}
