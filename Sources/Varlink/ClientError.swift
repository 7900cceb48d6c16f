/// Why a service gave no answer.
package enum ClientError: Error, Sendable, Hashable {
    /// Nobody listens at the path. `reason` is the system's word for it.
    case unreachable(path: String, reason: String)
    /// It did not answer in time.
    case timedOut(path: String)
    /// It closed the connection.
    case closed(path: String)
    /// It answered with something that is not its interface's.
    case unintelligible(path: String, reason: String)
    /// It answered with an error: its fully qualified name, and the reason where one is given.
    case refused(error: String, reason: String?)
    /// A signal came in while waiting.
    case interrupted
}

extension ClientError: CustomStringConvertible {
    /// One line, with the path.
    package var description: String {
        switch self {
        case .unreachable(let path, let reason): "\(path): \(reason)"
        case .timedOut(let path): "\(path): no answer"
        case .closed(let path): "\(path): the connection was closed"
        case .unintelligible(let path, let reason): "\(path): an answer that is not its interface's: \(reason)"
        case .refused(let error, let reason?): "\(error): \(reason)"
        case .refused(let error, nil): error
        case .interrupted: "interrupted"
        }
    }
}
