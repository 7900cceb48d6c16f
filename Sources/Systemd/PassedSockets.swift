import CSystemd
import Glibc

/// Sockets that systemd opened for the service (sd_listen_fds(3)).
package enum PassedSockets {
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// What is wrong and what to do.
        package let description: String
    }

    /// The listening stream sockets of any family that systemd passed, in the order of the socket unit.
    /// - Throws: ``Failure`` if it passed something else.
    package static func listeningStreams() throws(Failure) -> [Int32] {
        let descriptors = try passed()
        for descriptor in descriptors
        where sd_is_socket(descriptor, AF_UNSPEC, Int32(SOCK_STREAM.rawValue), 1) <= 0 {
            throw Failure(description: "systemd passed a socket that is not a listening stream; see ListenStream=")
        }
        return descriptors
    }

    /// The listening Unix-domain stream socket that systemd passed; `nil` if it passed none.
    /// - Throws: ``Failure`` if it passed something else, or more than one.
    package static func listeningStream() throws(Failure) -> Int32? {
        let descriptors = try passed()
        guard let descriptor = descriptors.first else { return nil }
        guard descriptors.count == 1 else {
            throw Failure(
                description: "systemd passed \(descriptors.count) sockets; the socket unit must have one ListenStream=")
        }
        guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else {
            throw Failure(description: "systemd passed a socket that is not a listening Unix stream; see ListenStream=")
        }
        return descriptor
    }

    /// Why sockets that systemd passed are not used; `nil` if there are none. A child of the process that got them inherits the variables.
    package static var notOurs: String? {
        guard let pid = getenv("LISTEN_PID").flatMap({ Int32(String(cString: $0)) }), getenv("LISTEN_FDS") != nil,
            pid != getpid()
        else { return nil }
        return "systemd passed sockets for process \(pid), and this one is \(getpid()): does the unit set PrivatePIDs=?"
    }

    private static func passed() throws(Failure) -> [Int32] {
        // The variables stay set: a child does not inherit the descriptors, and nothing else reads them.
        let count = sd_listen_fds(0)
        guard count >= 0 else {
            throw Failure(
                description: "the sockets passed by systemd can't be read: \(String(cString: strerror(-count)))")
        }
        // SD_LISTEN_FDS_START, a macro that Swift does not import as this type.
        return Array(3..<(3 + count))
    }
}
