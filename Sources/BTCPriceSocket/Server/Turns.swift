import DequeModule

/// The connections that wait to be served, by their tags: a pure value.
///
/// Users take turns, and so do the connections of each. Between two turns of a user, each other user that waits has one.
struct Turns {
    /// The users with waiting connections, in the order of their turns.
    private var users: Deque<Int> = []
    /// The waiting connections of each user.
    private var lines: [Deque<UInt64>] = []

    var isEmpty: Bool { users.isEmpty }

    /// Adds a connection, behind the others of its user.
    /// - Parameter user: The user's number, see ``ConnectionTable/Slot/user``.
    mutating func enter(_ connection: UInt64, of user: Int) {
        while lines.count <= user { lines.append([]) }
        if lines[user].isEmpty { users.append(user) }
        lines[user].append(connection)
    }

    /// Removes and returns the connection whose turn it is; `nil` if none waits.
    mutating func next() -> UInt64? {
        guard let user = users.popFirst(), let connection = lines[user].popFirst() else { return nil }
        if !lines[user].isEmpty { users.append(user) }
        return connection
    }
}
