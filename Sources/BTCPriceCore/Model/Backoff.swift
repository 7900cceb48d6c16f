/// The waits between attempts: each is twice the previous one, up to a maximum. A pure value.
package struct Backoff: Sendable {
    private let first: Duration
    private let longest: Duration
    /// The number of failures since the last success.
    private var failures = 0

    package init(from first: Duration, to longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// Records that an attempt has failed.
    /// - Returns: The wait before the next one.
    package mutating func next() -> Duration {
        defer { failures += 1 }
        return Self.wait(from: first, to: longest, after: failures)
    }

    /// Records that an attempt has succeeded: the next failure counts as the first one.
    package mutating func reset() { failures = 0 }

    /// The wait after a failure that follows `failures` earlier ones.
    package static func wait(from first: Duration, to longest: Duration, after failures: Int) -> Duration {
        min(first * Int(1 << min(20, max(0, failures))), longest)
    }
}
