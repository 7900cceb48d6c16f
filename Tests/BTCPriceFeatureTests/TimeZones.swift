import Glibc
import Synchronization

/// Serialises the tests of several suites that set the time zone of the process.
private let lock = Mutex(())

/// Runs `body` in a time zone, one after the other.
func inZone<Result: Sendable>(_ zone: String, _ body: () throws -> Result) rethrows -> Result {
    try lock.withLock { _ in
        let before = getenv("TZ").map { String(cString: $0) }
        setenv("TZ", zone, 1)
        tzset()
        defer {
            if let before { setenv("TZ", before, 1) } else { unsetenv("TZ") }
            tzset()
        }
        return try body()
    }
}
