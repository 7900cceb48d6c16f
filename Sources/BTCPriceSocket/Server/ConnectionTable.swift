import BTCPriceCore

/// The connections by descriptor, and the counts for the limits.
struct ConnectionTable {
    /// A connection with the loop's data about it.
    struct Slot {
        var connection: Connection
        /// The events it is registered for.
        var interest: UInt32
        /// Whether there may be input to read.
        var isReadable = false
        /// Whether it waits for its turn.
        var isWaiting = false
        /// The memory that it takes, as counted in the table.
        fileprivate(set) var heldBytes = 0
        /// Handles the pending call.
        var answer: Task<Void, Never>?
        let descriptor: Int32
        let uid: UInt32
        /// Distinguishes connections that had the same descriptor one after the other.
        let generation: UInt32

        fileprivate mutating func apply<Result>(_ body: (inout Slot) -> Result) -> Result { body(&self) }
    }

    /// What the connections of a user, or of all, take.
    struct Share {
        var count = 0
        /// Replies to write, and input that was read ahead.
        var heldBytes = 0
    }

    private var slots: [Slot?] = []
    private var shares: [UInt32: Share] = [:]
    private var generation: UInt32 = 0

    private(set) var total = Share()

    var count: Int { total.count }

    var users: Int { shares.count }

    func share(of uid: UInt32) -> Share { shares[uid] ?? Share() }

    /// The user whose connections hold most, and what they hold; `nil` without a connection.
    var greatestHolder: (uid: UInt32, share: Share)? {
        shares.max { $0.value.heldBytes < $1.value.heldBytes }.map { ($0.key, $0.value) }
    }

    /// The connections of a user that hold anything, those first whose client has not done anything for the longest time.
    func holders(of uid: UInt32) -> [Int32] {
        let held = slots.indices.compactMap { place -> (Int32, BootTime)? in
            guard let slot = slots[place], slot.uid == uid, slot.heldBytes > 0 else { return nil }
            return (Int32(place), slot.connection.since)
        }
        return held.sorted { $0.1 < $1.1 }.map(\.0)
    }

    /// The limit that another connection of a user would exceed; `nil` if it may be added.
    /// - Parameter isPrivileged: Whether the user may use the reserve.
    func limit(_ limits: ServerLimits, for uid: UInt32, isPrivileged: Bool) -> ClientLimit? {
        let reserve = isPrivileged ? ServerLimits.reserve : 0
        if count >= limits.connections + reserve { return .connections }
        return share(of: uid).count >= limits.connectionsPerUser + reserve ? .connectionsPerUser : nil
    }

    /// Counts the memory that a connection takes now.
    mutating func count(heldBy descriptor: Int32) {
        let change = with(descriptor) { slot in
            let before = slot.heldBytes
            slot.heldBytes = slot.connection.heldBytes
            return (slot.uid, slot.heldBytes - before)
        }
        if let (uid, more) = change, more != 0 { add(Share(heldBytes: more), to: uid) }
    }

    private mutating func add(_ difference: Share, to uid: UInt32) {
        total.count += difference.count
        total.heldBytes += difference.heldBytes
        shares[uid, default: Share()].count += difference.count
        shares[uid, default: Share()].heldBytes += difference.heldBytes
        if share(of: uid).count == 0 { shares[uid] = nil }
    }

    var descriptors: [Int32] { slots.indices.filter { slots[$0] != nil }.map { Int32($0) } }

    /// Accesses the slot in place, without a copy.
    subscript(descriptor: Int32) -> Slot? {
        _read {
            if Int(descriptor) < slots.count { yield slots[Int(descriptor)] } else { yield nil }
        }
        _modify {
            precondition(Int(descriptor) < slots.count, "only what was added is changed")
            yield &slots[Int(descriptor)]
        }
    }

    /// Calls `body` with a connection's slot in place; `nil` if there is none.
    mutating func with<Result>(_ descriptor: Int32, _ body: (inout Slot) -> Result) -> Result? {
        guard Int(descriptor) < slots.count else { return nil }
        return slots[Int(descriptor)]?.apply(body)
    }

    /// Adds a connection.
    /// - Returns: Its tag, unique among the open connections.
    mutating func add(_ connection: Connection, descriptor: Int32, uid: UInt32, interest: UInt32) -> UInt64 {
        let missing = Int(descriptor) + 1 - slots.count
        if missing > 0 { slots.append(contentsOf: repeatElement(nil, count: missing)) }
        generation &+= 1
        slots[Int(descriptor)] = Slot(
            connection: connection, interest: interest, answer: nil, descriptor: descriptor, uid: uid,
            generation: generation)
        add(Share(count: 1), to: uid)
        return Self.tag(descriptor, generation)
    }

    mutating func remove(_ descriptor: Int32) {
        guard let slot = self[descriptor] else { return }
        slots[Int(descriptor)] = nil
        add(Share(count: -1, heldBytes: -slot.heldBytes), to: slot.uid)
    }

    /// The tag of an open connection.
    func tag(of descriptor: Int32) -> UInt64 {
        Self.tag(descriptor, self[descriptor]?.generation ?? 0)
    }

    /// The descriptor of a tag; `nil` if its connection has ended.
    func descriptor(of tag: UInt64) -> Int32? {
        let descriptor = Int32(truncatingIfNeeded: tag)
        guard descriptor >= 0, self[descriptor]?.generation == UInt32(tag >> 32) else { return nil }
        return descriptor
    }

    private static func tag(_ descriptor: Int32, _ generation: UInt32) -> UInt64 {
        UInt64(generation) << 32 | UInt64(UInt32(descriptor))
    }
}
