/// Whether the ticks run.
package enum Ticking: String, Sendable, Hashable, CaseIterable {
    /// The ticks run, or are stopped only while the machine sleeps.
    case running
    /// An operator has paused them.
    case paused
    /// The ticks are stopped until a client wants a price.
    case idle
}
