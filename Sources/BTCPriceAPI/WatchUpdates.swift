/// When a watch gets a reply.
package enum WatchUpdates: String, Sendable, Hashable, CaseIterable {
    /// After each tick.
    case ticks
    /// After each tick, and between the ticks whenever the price has changed.
    case changes
}
