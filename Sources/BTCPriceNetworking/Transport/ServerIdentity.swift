import NIOCore
import NIOSSL

/// The identity that a server's certificate must show (RFC 9525).
///
/// NIOSSL also accepts a certificate for the connected IP address, even if the server has a name. A forged DNS response or a proxy
/// would then need only a certificate for its own address.
enum ServerIdentity: Hashable {
    /// In lower case, without a trailing period.
    case name([UInt8])
    case address(SocketAddress)

    init(_ origin: HTTPRequest.Origin) {
        self = origin.address.map(Self.address) ?? .name(Self.comparable(origin.host.utf8))
    }

    /// Whether NIOSSL's own check of the host applies. It compares an address with the connected one, which may be the proxy's.
    var isName: Bool {
        if case .name = self { true } else { false }
    }

    /// Whether a valid certificate is this server's. NIOSSL compares the common name if there is no subject alternative name.
    func isShown(by certificate: NIOSSLCertificate) -> Bool {
        let names = certificate._subjectAlternativeNames()
        if names.isEmpty { return isName }
        return names.contains { name in
            switch self {
            case .name: name.nameType == .dnsName && matches(name.contents)
            case .address: name.nameType == .ipAddress && isAddress(name.contents)
            }
        }
    }

    /// Whether a certificate's address is this one.
    func isAddress(_ presented: some Collection<UInt8>) -> Bool {
        guard case .address(let address) = self else { return false }
        do {
            return try SocketAddress(packedIPAddress: ByteBuffer(bytes: presented), port: address.port ?? 0) == address
        } catch {
            // Not four or sixteen bytes.
            return false
        }
    }

    /// Whether a certificate's name matches this one. An asterisk matches exactly the first label (section 6.3).
    func matches(_ presented: some Collection<UInt8>) -> Bool {
        guard case .name(let name) = self else { return false }
        let presented = Self.comparable(presented)
        if presented == name { return true }
        guard presented.starts(with: "*.".utf8), let period = name.firstIndex(of: UInt8(ascii: ".")), period > 0 else {
            return false
        }
        let domain = name[period...]
        // A wildcard directly below a top-level domain is not accepted.
        return domain.dropFirst().contains(UInt8(ascii: ".")) && presented.dropFirst().elementsEqual(domain)
    }

    private static func comparable(_ name: some Collection<UInt8>) -> [UInt8] {
        var name = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        return name
    }
}
