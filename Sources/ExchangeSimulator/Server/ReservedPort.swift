import Glibc
import NIOCore

/// Keeps a port for this process while nobody listens on it, with a socket that is bound but does not listen. Connections are refused,
/// and no other process gets the port. A listener shares the port by SO_REUSEPORT (socket(7)).
final class ReservedPort: Sendable {
    let port: Int
    private let descriptor: Int32

    /// - Parameter port: The port; 0 for any free one.
    /// - Throws: ``Simulator/Failure`` if the port is in use.
    init(host: String, port: Int) throws {
        let address = try SocketAddress(ipAddress: host, port: port)
        // Another simulator shares its ports too, but not without this option.
        if port != 0 { close(try Self.socket(at: address, option: SO_REUSEADDR)) }
        let descriptor = try Self.socket(at: address, option: SO_REUSEPORT)
        // Two bytes of family and two of port, in IPv4 and IPv6 alike (ip(7), ipv6(7)).
        var name = [UInt8](repeating: 0, count: 28)
        var length = socklen_t(name.count)
        let isKnown = name.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return getsockname(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length) == 0
        }
        guard isKnown else {
            close(descriptor)
            throw Simulator.Failure(description: "port \(port): its number is not known")
        }
        self.descriptor = descriptor
        self.port = Int(name[2]) << 8 | Int(name[3])
    }

    private static func socket(at address: SocketAddress, option: Int32) throws -> Int32 {
        let descriptor = Glibc.socket(
            address.protocol == .inet6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var isOn: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, option, &isOn, socklen_t(MemoryLayout<Int32>.size))
        guard address.withSockAddr({ bind(descriptor, $0, socklen_t($1)) == 0 }) else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw Simulator.Failure(description: "port \(address.port ?? 0): \(reason)")
        }
        return descriptor
    }

    deinit {
        close(descriptor)
    }
}
