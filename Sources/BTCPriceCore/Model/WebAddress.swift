import Glibc

/// The parts of a URL with a host (RFC 3986).
package struct WebAddress: Sendable {
    /// In lower case: `https`.
    package let scheme: String
    /// In a resolver's form: without the brackets of an IPv6 address.
    package let host: String
    /// 1 to 65,535; `nil` if the URL has none.
    package let port: Int?
    /// Begins with `/`, or is empty. Characters that a URL can't contain are percent-encoded, here and in ``query``.
    package let path: String
    /// What follows `?`; `nil` if there is none.
    package let query: String?

    /// - Returns: `nil` if it is not a URL, if it has a user name, or if its host is neither a possible name nor an IPv6 address in brackets.
    package init?(_ url: String) {
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else { return nil }
        scheme = url[..<colon].lowercased()
        guard scheme.first?.isLetter == true, scheme.isWord(with: "+-.") else { return nil }
        let rest = url[url.index(colon, offsetBy: 3)...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let target = rest[authority.endIndex...]
        path = Self.encoded(target.prefix { $0 != "?" })
        query = target.firstIndex(of: "?").map { Self.encoded(target[$0...].dropFirst()) }

        let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map(authority.index(after:)) : nil
        let name = authority[..<(end ?? authority.firstIndex(of: ":") ?? authority.endIndex)]
        let number = authority[name.endIndex...]
        guard let host = Self.host(name) else { return nil }
        self.host = host
        if number.isEmpty {
            port = nil
        } else {
            guard number.first == ":", let port = number.dropFirst().wholeNumber(digits: 5), (1...65_535).contains(port)
            else { return nil }
            self.port = port
        }
    }

    private static func host(_ text: Substring) -> String? {
        guard text.hasPrefix("[") else {
            // No name is longer (RFC 1035, section 2.3.4).
            let isName = text.isWord(with: "-._")
            return isName && text.utf8.count <= 253 ? String(text) : nil
        }
        let address = String(text.dropFirst().dropLast())
        var bytes = (UInt64(0), UInt64(0))
        return inet_pton(AF_INET6, address, &bytes) == 1 ? address : nil
    }

    /// A path or query with the characters that it can't contain as `%22` (RFC 3986, sections 2.1, 3.3 and 3.4).
    private static func encoded(_ text: Substring) -> String {
        var (result, rest) = ("", text.utf8[...])
        while let byte = rest.popFirst() {
            let character = Character(UnicodeScalar(byte))
            let isCode =
                byte == UInt8(ascii: "%") && rest.prefix(2).count { Character(UnicodeScalar($0)).isHexDigit } == 2
            if isCode || byte < 0x80 && String(character).isWord(with: "-._~!$&'()*+,;=:@/?") {
                result.append(character)
            } else {
                result += "%" + byte.padded(2, radix: 16).uppercased()
            }
        }
        return result
    }
}

extension StringProtocol {
    /// A host as it is in a URL: an IPv6 address in brackets.
    package var bracketedHost: String { contains(":") ? "[\(self)]" : String(self) }

    /// The text with its percent-escapes decoded; `nil` if one is not complete, or if they stand for no text.
    package var percentDecoded: String? {
        var (bytes, rest): ([UInt8], _) = ([], utf8[...])
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.count == 2, digits.allSatisfy(\.isHexDigit), let code = UInt8(digits, radix: 16) else {
                return nil
            }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
