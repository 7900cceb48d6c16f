/// Why a call to a service failed.
package enum ClientError: Error, Sendable, Hashable {
    /// No service listens at the path. `reason` is the system's message.
    case unreachable(path: String, reason: String)
    /// The service did not reply in time.
    case timedOut(path: String)
    /// The service closed the connection.
    case closed(path: String)
    /// The reply does not match the interface.
    case unintelligible(path: String, reason: String)
    /// The service replied with an error: its fully qualified name, and the reason if given.
    case refused(error: String, reason: String?)
    /// A signal or the caller interrupted the wait.
    case interrupted
}

extension ClientError: CustomStringConvertible {
    /// One line, with the path.
    package var description: String {
        switch self {
        case .unreachable(let path, let reason): "\(path): \(reason)"
        case .timedOut(let path): "\(path): no answer"
        case .closed(let path): "\(path): the connection was closed"
        case .unintelligible(let path, let reason): "\(path): a response that does not match the interface: \(reason)"
        case .refused(let error, let reason?): "\(error): \(reason)"
        case .refused(let error, nil): error
        case .interrupted: "interrupted"
        }
    }
}
