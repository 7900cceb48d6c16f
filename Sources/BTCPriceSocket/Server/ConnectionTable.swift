/// The connections by descriptor, and the counts for the limits.
struct ConnectionTable {
    /// A connection with the loop's data about it.
    struct Slot {
        var connection: Connection
        /// The events it is registered for.
        var interest: UInt32
        /// Handles the pending call.
        var answer: Task<Void, Never>?
        let uid: UInt32
        /// Distinguishes connections that had the same descriptor one after the other.
        let generation: UInt32

        fileprivate mutating func apply<Result>(_ body: (inout Slot) -> Result) -> Result { body(&self) }
    }

    private var slots: [Slot?] = []
    private var countByUser: [UInt32: Int] = [:]
    private var generation: UInt32 = 0

    private(set) var count = 0

    var users: Int { countByUser.count }

    func count(of uid: UInt32) -> Int {
        countByUser[uid, default: 0]
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
            connection: connection, interest: interest, answer: nil, uid: uid, generation: generation)
        count += 1
        countByUser[uid, default: 0] += 1
        return Self.tag(descriptor, generation)
    }

    mutating func remove(_ descriptor: Int32) {
        guard let slot = self[descriptor] else { return }
        slots[Int(descriptor)] = nil
        count -= 1
        let left = countByUser[slot.uid, default: 1] - 1
        countByUser[slot.uid] = left > 0 ? left : nil
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
