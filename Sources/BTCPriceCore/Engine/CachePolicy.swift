/// Where a price may come from.
package enum CachePolicy: String, Sendable, Hashable, CaseIterable {
    /// The held price; request one only if none is held. The default.
    case localFirst
    /// Request one now; the held price if that fails.
    case remoteFirst
    /// Request one now or fail.
    case noCache
}
