/// A socket event to report to the operator.
package enum ServerEvent: Sendable, Hashable {
    /// A client of a user hit a limit, whose value is `most`.
    case limitHit(ClientLimit, most: Int64, uid: UInt32)
    /// No connection can be accepted at present. The ticks continue.
    case acceptFailed(reason: String)

    /// What happened, as a sentence without its full stop.
    package var text: String {
        switch self {
        case .limitHit(let limit, let most, let uid): Self.text(limit, most, "user \(uid)")
        case .acceptFailed(let reason): "No client can connect for the moment: \(reason)"
        }
    }

    private static func text(_ limit: ClientLimit, _ most: Int64, _ user: String) -> String {
        switch limit {
        case .connections: "A client of \(user) was refused: there are \(most) connections already"
        case .connectionsPerUser: "A client of \(user) was refused: it has \(most) connections already"
        case .messageBytes: "A client of \(user) was disconnected: it sent a call longer than \(most) bytes"
        case .queuedBytes:
            "Clients of \(user) were disconnected: more than \(most) bytes of unread replies and of calls sent in advance were held, or three quarters of this were theirs"
        case .pendingCalls:
            "A call of \(user) was refused: more than \(most) are pending, or three quarters of this are its own"
        case .costPerSecond:
            "Calls of \(user) wait: they cause more work than \(most) units of about 0.1 ms a second"
        case .idleTimeout: "A client of \(user) was disconnected: it made no call for \(most / 1000) s"
        case .messageTimeout:
            "A client of \(user) was disconnected: it sent half a call, and no more for \(most / 1000) s"
        case .writeTimeout: "A client of \(user) was disconnected: it did not read its replies for \(most / 1000) s"
        }
    }
}
