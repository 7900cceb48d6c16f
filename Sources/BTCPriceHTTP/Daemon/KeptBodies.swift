import Synchronization

/// The bodies that were made from one reply of the daemon. Requests with the same target share one.
final class KeptBodies: Sendable {
    private let bodies = Mutex<[String: Representation]>([:])

    /// The maximum number of bodies. Clients can vary targets without limit, for example with unknown parameters.
    private static let most = 64

    /// The body of a target, made once.
    func body<Failure>(
        of target: String, _ make: () throws(Failure) -> Representation
    ) throws(Failure) -> Representation {
        if let known = bodies.withLock({ $0[target] }) { return known }
        let made = try make()
        bodies.withLock { if $0.count < Self.most { $0[target] = made } }
        return made
    }
}
