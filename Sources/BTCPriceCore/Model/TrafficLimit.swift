/// Limits the messages and the bytes that a connection brings. A pure value.
///
/// Five seconds' worth of both may come at once.
package struct TrafficLimit: Sendable {
    private let messages: Int64
    private let bytes: Int64
    /// What has come above the sustained rate, in thousandths.
    private var excess = (messages: Int64(0), bytes: Int64(0))
    private var counted = BootTime.boot
    private static let burst: Int64 = 5000

    /// - Parameters:
    ///   - messages: The number a second.
    ///   - bytes: The bytes a second, in total.
    package init(messages: Int64, bytes: Int64) {
        self.messages = messages
        self.bytes = bytes
    }

    /// `more than 100 messages or 256 KiB a second`
    package var excessText: String { "more than \(messages) messages or \(bytes / 1024) KiB a second" }

    /// Counts what has come.
    /// - Returns: Whether it is within the limit.
    package mutating func count(messages count: Int = 1, bytes size: Int, at boottime: BootTime) -> Bool {
        let passed = min(max(0, boottime - counted), Self.burst)
        counted = boottime
        excess.messages = max(0, excess.messages - passed * messages) + Int64(count) * 1000
        excess.bytes = max(0, excess.bytes - passed * bytes) + Int64(size) * 1000
        return excess.messages <= Self.burst * messages && excess.bytes <= Self.burst * bytes
    }
}
