import BTCPriceSocket

/// An answer that is expensive to make: calls that come while it is made share it, and its memory.
actor SharedAnswer {
    private var underWay: Task<CallAnswer, Never>?

    /// - Parameter make: Makes the answer. Not called while an earlier call makes it.
    func answer(_ make: @escaping @Sendable () async -> CallAnswer) async -> CallAnswer {
        if let underWay { return await underWay.value }
        let task = Task { await make() }
        underWay = task
        defer { underWay = nil }
        return await task.value
    }
}
