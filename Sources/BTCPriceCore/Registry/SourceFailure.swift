/// Why one source gave no price.
package struct SourceFailure: Sendable, Hashable {
    /// The source's name.
    package let source: String
    package let error: PriceLoadingError
    /// The cooldown that this failure started, if any.
    package let cooldown: SourceCooldown?

    package init(source: String, error: PriceLoadingError, cooldown: SourceCooldown? = nil) {
        self.source = source
        self.error = error
        self.cooldown = cooldown
    }
}
