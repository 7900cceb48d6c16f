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
        /// The user's number: of the users with connections, each has another small one.
        let user: Int
        /// Unique among the connections, also those that had the same descriptor before.
        let tag: UInt64

        fileprivate mutating func apply<Result>(_ body: (inout Slot) -> Result) -> Result { body(&self) }
    }

    /// What the connections of a user, or of all, take.
    struct Share {
        var count = 0
        /// Replies to write, and input that was read ahead.
        var heldBytes = 0
    }

    private var slots: [Slot?] = []
    /// The numbers of the users with connections.
    private var numbers: [UInt32: Int] = [:]
    /// The shares of the users, by their numbers.
    private var shares: [Share] = []
    /// The numbers below that of the shares that no user has.
    private var free: [Int] = []
    private var generation: UInt32 = 0

    private(set) var total = Share()

    var count: Int { total.count }

    var users: Int { numbers.count }

    func share(of uid: UInt32) -> Share { numbers[uid].map { shares[$0] } ?? Share() }

    /// The user whose connections hold most, and what they hold; `nil` without a connection.
    var greatestHolder: (uid: UInt32, share: Share)? {
        numbers.max { shares[$0.value].heldBytes < shares[$1.value].heldBytes }.map { ($0.key, shares[$0.value]) }
    }

    /// The connections of a user that hold anything, those first whose client has not done anything for the longest time.
    func holders(of uid: UInt32) -> [Int32] {
        let held = slots.indices.compactMap { index -> (Int32, BootTime)? in
            guard let slot = slots[index], slot.uid == uid, slot.heldBytes > 0 else { return nil }
            return (Int32(index), slot.connection.since)
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
            return (slot.user, slot.heldBytes - before)
        }
        guard let (user, more) = change, more != 0 else { return }
        total.heldBytes += more
        shares[user].heldBytes += more
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
        guard slots.indices.contains(Int(descriptor)) else { return nil }
        return slots[Int(descriptor)]?.apply(body)
    }

    /// The same for the connection with a tag.
    mutating func with<Result>(tag: UInt64, _ body: (inout Slot) -> Result) -> Result? {
        with(Int32(truncatingIfNeeded: tag)) { $0.tag == tag ? body(&$0) : nil } ?? nil
    }

    /// Adds a connection.
    /// - Returns: Its tag, unique among the open connections.
    mutating func add(_ connection: Connection, descriptor: Int32, uid: UInt32, interest: UInt32) -> UInt64 {
        let missing = Int(descriptor) + 1 - slots.count
        if missing > 0 { slots.append(contentsOf: repeatElement(nil, count: missing)) }
        generation &+= 1
        let tag = UInt64(generation) << 32 | UInt64(UInt32(descriptor))
        let user = numbers[uid] ?? free.popLast() ?? shares.count
        if user == shares.count { shares.append(Share()) }
        numbers[uid] = user
        shares[user].count += 1
        total.count += 1
        slots[Int(descriptor)] = Slot(
            connection: connection, interest: interest, answer: nil, descriptor: descriptor, uid: uid, user: user,
            tag: tag)
        return tag
    }

    mutating func remove(_ descriptor: Int32) {
        guard let slot = self[descriptor] else { return }
        slots[Int(descriptor)] = nil
        total.count -= 1
        total.heldBytes -= slot.heldBytes
        shares[slot.user].count -= 1
        shares[slot.user].heldBytes -= slot.heldBytes
        if shares[slot.user].count == 0 {
            numbers[slot.uid] = nil
            free.append(slot.user)
        }
    }

    /// The tag of an open connection; 0 for none.
    func tag(of descriptor: Int32) -> UInt64 { self[descriptor]?.tag ?? 0 }

    /// The descriptor of a tag; `nil` if its connection has ended.
    mutating func descriptor(of tag: UInt64) -> Int32? { with(tag: tag) { $0.descriptor } }
}
