import Synchronization

/// The bodies that were made from one reply of the daemon. Requests for the same share one.
final class KeptBodies: Sendable {
    private let bodies = Mutex<[String: Representation]>([:])

    /// The maximum number of bodies. Clients can request many, for example lists of pairs in any order.
    private static let most = 64

    /// The body of a form, made once.
    /// - Parameter form: What the client has requested, however it was spelled.
    func body<Failure>(
        of form: String, _ make: () throws(Failure) -> Representation
    ) throws(Failure) -> Representation {
        if let known = bodies.withLock({ $0[form] }) { return known }
        let made = try make()
        bodies.withLock { if $0.count < Self.most { $0[form] = made } }
        return made
    }
}
