/// The waits between attempts: each is twice the one before, up to a longest one. A pure value.
package struct Backoff: Sendable {
    private let first: Duration
    private let longest: Duration
    /// The failures since the last success.
    private var failures = 0

    /// - Parameters:
    ///   - first: The wait after the first failure.
    ///   - longest: The longest wait.
    package init(from first: Duration, to longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// An attempt has failed.
    /// - Returns: The wait before the next one.
    package mutating func next() -> Duration {
        defer { failures += 1 }
        return Self.wait(from: first, to: longest, after: failures)
    }

    /// An attempt has succeeded: the next failure is a first one.
    package mutating func reset() { failures = 0 }

    /// The wait after some earlier failures.
    package static func wait(from first: Duration, to longest: Duration, after failures: Int) -> Duration {
        min(first * Int(1 << min(20, max(0, failures))), longest)
    }
}
