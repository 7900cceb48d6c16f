import Crypto
import FoundationEssentials
import NIOSSL
import SwiftASN1
import X509

/// The simulator's certificate authority, created at each start, and the certificates that it issues.
struct Authority {
    private let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
    private let name: DistinguishedName
    private let certificate: Certificate

    init() throws {
        name = try DistinguishedName { CommonName("exchange-simulator") }
        let key = self.key
        certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey, notValidBefore: Date.now - Self.year,
            notValidAfter: .now + Self.year, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
            }, issuerPrivateKey: key)
    }

    private static let year: TimeInterval = 365 * 86_400

    /// The authority's own certificate as PEM, for clients to trust.
    var pem: String {
        get throws { try certificate.serializeAsPEM().pemString }
    }

    /// A server's TLS context with a valid or an invalid certificate.
    /// - Parameters:
    ///   - fault: What is wrong with the certificate; `nil` for a valid one.
    ///   - since: The time from which the seconds of ``FaultScript/Certificate/notYetValid(seconds:)`` count.
    func context(_ fault: FaultScript.Certificate?, since: Date = .now) throws -> NIOSSLContext {
        switch fault {
        case .forged: return try Authority().context(nil)
        case .expired: return try issue(from: .now - Self.year / 2, to: .now - 3600)
        case .notYetValid(let seconds): return try issue(from: since + Double(seconds), to: .now + Self.year / 2)
        case .otherHost: return try issue(names: [.dnsName("exchange.example")])
        case nil: return try issue()
        }
    }

    private func issue(
        from: Date = .now - 86_400, to: Date = .now + year / 2,
        names: [GeneralName] = [
            .dnsName("localhost"), .dnsName("exchange.test"),
            .ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1])),
            .ipAddress(ASN1OctetString(contentBytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        ]
    ) throws -> NIOSSLContext {
        let leafKey = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let leaf = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: leafKey.publicKey, notValidBefore: from, notValidAfter: to,
            issuer: name, subject: try DistinguishedName { CommonName("exchange") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                SubjectAlternativeNames(names)
            }, issuerPrivateKey: key)
        return try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: [.certificate(try NIOSSLCertificate(bytes: Self.pem(leaf), format: .pem))],
                privateKey: .privateKey(
                    try NIOSSLPrivateKey(bytes: Array(leafKey.serializeAsPEM().pemString.utf8), format: .pem))))
    }

    private static func pem(_ certificate: Certificate) throws -> [UInt8] {
        Array(try certificate.serializeAsPEM().pemString.utf8)
    }
}
