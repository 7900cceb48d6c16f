import NIOCore
import NIOSSL

/// Who a server must be by its certificate (RFC 9525).
///
/// The library also takes a certificate for the address that is connected to, and that where the server has a name, too: then whoever
/// answers in a name server's place, or is the proxy, would need a certificate for no more than an address of its own.
enum ServerIdentity: Hashable {
    /// In lower case, without a period at its end.
    case name([UInt8])
    case address(SocketAddress)

    init(_ origin: HTTPRequest.Origin) {
        self = origin.address.map(Self.address) ?? .name(Self.comparable(origin.host.utf8))
    }

    /// Whether the library's own look at the certificate, which comes first, is of use: it knows no address but the one connected to,
    /// which behind a proxy is another's.
    var isName: Bool {
        if case .name = self { true } else { false }
    }

    /// Whether a certificate that is valid is this server's. One without any subject alternative name is left to the library, which
    /// compares its common name.
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
            // Neither four bytes nor sixteen.
            return false
        }
    }

    /// Whether a certificate's name is this one, or stands for it: an asterisk stands for the whole of the first label (section 6.3).
    func matches(_ presented: some Collection<UInt8>) -> Bool {
        guard case .name(let name) = self else { return false }
        let presented = Self.comparable(presented)
        if presented == name { return true }
        guard presented.starts(with: "*.".utf8), let period = name.firstIndex(of: UInt8(ascii: ".")), period > 0 else {
            return false
        }
        let domain = name[period...]
        // Nobody owns all names of a top-level domain.
        return domain.dropFirst().contains(UInt8(ascii: ".")) && presented.dropFirst().elementsEqual(domain)
    }

    private static func comparable(_ name: some Collection<UInt8>) -> [UInt8] {
        var name = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        return name
    }
}
