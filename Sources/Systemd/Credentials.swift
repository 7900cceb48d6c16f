import Glibc

/// Secrets that systemd passes to the service as files (systemd.exec(5), LoadCredential=).
package struct Credentials: Sendable {
    /// A credential that exists but can't be read.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// The longest secret accepted, bytes.
    private static let longest = 4096
    private let directory: String?

    /// - Parameter environment: The process's environment, for `CREDENTIALS_DIRECTORY`.
    package init(environment: [String: String]) {
        directory = environment["CREDENTIALS_DIRECTORY"]
    }

    /// The secret with this name, without surrounding white space; `nil` if it is missing or empty.
    /// - Throws: ``Failure`` if it can't be read or is too long.
    package func secret(_ name: String) throws(Failure) -> String? {
        guard let directory else { return nil }
        let path = "\(directory)/\(name)"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 {
            let number = errno
            if number == ENOENT { return nil }
            throw Failure(description: "cannot read the credential \(path): \(String(cString: strerror(number)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(description: "the credential \(path) is not a regular file")
        }
        var bytes = [UInt8](repeating: 0, count: Self.longest + 1)
        let count = read(descriptor, &bytes, bytes.count)
        guard count >= 0 else {
            throw Failure(description: "cannot read the credential \(path): \(String(cString: strerror(errno)))")
        }
        guard count <= Self.longest, let text = String(validating: bytes[..<count], as: UTF8.self) else {
            throw Failure(description: "the credential \(path) is not a text of at most \(Self.longest) bytes")
        }
        guard
            text.unicodeScalars.allSatisfy({ $0.properties.isWhitespace || $0.properties.generalCategory != .control })
        else { throw Failure(description: "the credential \(path) contains a control character") }
        try Self.refuseEncrypted(text, path)
        let secret = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return secret.isEmpty ? nil : secret
    }

    /// Refuses an encrypted credential, as systemd-creds(1) writes it: several lines of base64. No secret here is.
    package static func refuseEncrypted(_ text: String, _ path: String) throws(Failure) {
        let lines = text.split(separator: "\n")
        let isBase64 = { (byte: UInt8) in
            let character = Character(UnicodeScalar(byte))
            return byte < 0x80 && (character.isLetter || character.isNumber || "+/=".contains(character))
        }
        guard text.utf8.count >= 100, lines.count > 1, lines.allSatisfy({ $0.utf8.allSatisfy(isBase64) }) else {
            return
        }
        throw Failure(
            description:
                "the credential \(path) is encrypted: LoadCredential= passes it as it is, so the unit needs LoadCredentialEncrypted="
        )
    }
}
