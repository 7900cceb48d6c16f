/// All watchers, and the progress of a fan-out: a pure value.
struct Watchers {
    private var ofTicks = WatcherList()
    private var ofChanges = WatcherList()
    /// Whether the present fan-out is for all of them.
    private var isForAll = true

    var count: Int { ofTicks.count + ofChanges.count }

    mutating func enter(_ descriptor: Int32, of updates: WatchUpdates = .ticks) {
        switch updates {
        case .ticks: ofTicks.enter(descriptor)
        case .changes: ofChanges.enter(descriptor)
        }
    }

    /// Removes a watcher.
    /// - Returns: What it watched; `nil` if it was not a watcher.
    mutating func leave(_ descriptor: Int32) -> WatchUpdates? {
        if ofTicks.leave(descriptor) { return .ticks }
        return ofChanges.leave(descriptor) ? .changes : nil
    }

    /// Starts a fan-out.
    /// - Parameter isForAll: Whether it is for all watchers, or only for those of changes.
    mutating func beginFanOut(isForAll: Bool = true) {
        self.isForAll = isForAll
        ofTicks.beginFanOut()
        ofChanges.beginFanOut()
    }

    /// The next watcher to serve; `nil` if all are served.
    mutating func nextToServe() -> Int32? { (isForAll ? ofTicks.nextToServe() : nil) ?? ofChanges.nextToServe() }
}

/// Watchers of one kind, and the progress of a fan-out to them.
///
/// A fan-out serves the watchers in slices, while others enter and leave. None may be missed or served twice, so watchers that have
/// the state stay in front of those that do not. Every operation takes constant time.
private struct WatcherList {
    private var order: [Int32] = []
    /// The index in `order` by descriptor, or -1.
    private var positions: [Int32] = []
    private var served = 0

    var count: Int { order.count }

    /// Adds a watcher at the end.
    mutating func enter(_ descriptor: Int32) {
        let missing = Int(descriptor) + 1 - positions.count
        if missing > 0 { positions.append(contentsOf: repeatElement(-1, count: missing)) }
        positions[Int(descriptor)] = Int32(order.count)
        order.append(descriptor)
    }

    /// Removes a watcher.
    /// - Returns: Whether it was a watcher.
    mutating func leave(_ descriptor: Int32) -> Bool {
        guard Int(descriptor) < positions.count, positions[Int(descriptor)] >= 0 else { return false }
        var hole = Int(positions[Int(descriptor)])
        if hole < served {
            served -= 1
            put(order[served], at: hole)
            hole = served
        }
        let last = order.removeLast()
        if hole < order.count { put(last, at: hole) }
        positions[Int(descriptor)] = -1
        return true
    }

    /// Starts a fan-out to all watchers.
    mutating func beginFanOut() {
        served = 0
    }

    /// The next watcher to serve; `nil` if all are served.
    mutating func nextToServe() -> Int32? {
        guard served < order.count else { return nil }
        defer { served += 1 }
        return order[served]
    }

    private mutating func put(_ descriptor: Int32, at position: Int) {
        order[position] = descriptor
        positions[Int(descriptor)] = Int32(position)
    }
}
