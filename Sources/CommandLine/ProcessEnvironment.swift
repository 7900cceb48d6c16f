// Programs read C's `environ` once, before they start threads, and nothing changes it.
@preconcurrency import Glibc

/// The environment of this process. Of two entries of a name the first counts, as for getenv(3).
package func processEnvironment() -> [String: String] {
    var environment: [String: String] = [:]
    var next = environ
    while let entry = next.pointee {
        let parts = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2, environment[String(parts[0])] == nil { environment[String(parts[0])] = String(parts[1]) }
        next += 1
    }
    return environment
}
