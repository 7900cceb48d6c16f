import DequeModule

/// The connections that wait to be served, by their tags: a pure value.
///
/// Users take turns, and so do the connections of each. Between two turns of a user, each other user that waits has one.
struct Turns {
    /// The users with waiting connections, in the order of their turns.
    private var users: Deque<UInt32> = []
    private var waiting: [UInt32: Deque<UInt64>] = [:]

    var isEmpty: Bool { users.isEmpty }

    /// Adds a connection, behind the others of its user.
    mutating func enter(_ connection: UInt64, of user: UInt32) {
        if waiting[user] == nil { users.append(user) }
        waiting[user, default: []].append(connection)
    }

    /// Removes and returns the connection whose turn it is; `nil` if none waits.
    mutating func next() -> UInt64? {
        guard let user = users.popFirst(), let connection = waiting[user]?.popFirst() else { return nil }
        if waiting[user]?.isEmpty == false { users.append(user) } else { waiting[user] = nil }
        return connection
    }
}
