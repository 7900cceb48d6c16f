/// The state of an exchange's stream that must survive a restart. All times are `CLOCK_BOOTTIME` in milliseconds.
package struct StreamRecord: Sendable, Hashable {
    /// The last attempts to open a connection.
    package var attempts: [Int64]
    /// No attempt is made before this time, because the exchange limits or refuses connections.
    package var restUntil: Int64

    package init(attempts: [Int64] = [], restUntil: Int64 = .min) {
        self.attempts = attempts
        self.restUntil = restUntil
    }
}
