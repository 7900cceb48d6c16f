/// Determines which query runs next. A pure value.
///
/// A few queries run at a time. Of the waiting ones, the next is that of the user whose last turn is the longest ago.
struct QueryTurns<Query> {
    private struct Waiting {
        let id: Int
        let user: UInt32?
        let query: Query
    }

    private let capacity: Int
    private var running = 0
    private var waiting: [Waiting] = []
    /// The number of each user's last turn.
    private var turns: [UInt32?: Int] = [:]
    private var lastTurn = 0

    /// - Parameter capacity: The maximum number of queries at a time.
    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Adds a query.
    /// - Parameter user: The user of the query; `nil` for the daemon's own.
    /// - Returns: Whether it may run now. Otherwise it waits.
    mutating func enter(_ query: Query, id: Int, of user: UInt32?) -> Bool {
        guard running >= capacity else {
            admit(user)
            return true
        }
        waiting.append(Waiting(id: id, user: user, query: query))
        return false
    }

    /// Ends a query.
    /// - Returns: The query that may run now; `nil` if there is none.
    mutating func leave() -> Query? {
        running -= 1
        guard let next = waiting.indices.min(by: { turn(of: waiting[$0]) < turn(of: waiting[$1]) }) else {
            if running == 0 { (turns, lastTurn) = ([:], 0) }
            return nil
        }
        let admitted = waiting.remove(at: next)
        admit(admitted.user)
        return admitted.query
    }

    /// Removes a query that is no longer wanted.
    /// - Returns: The query, if it was waiting.
    mutating func giveUp(_ id: Int) -> Query? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0).query }
    }

    private func turn(of waiting: Waiting) -> Int { turns[waiting.user] ?? 0 }

    private mutating func admit(_ user: UInt32?) {
        running += 1
        lastTurn += 1
        turns[user] = lastTurn
    }
}
