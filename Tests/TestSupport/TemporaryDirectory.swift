import FoundationEssentials
import Glibc

/// A temporary folder, removed at the end of its test.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() {
        var template = Array("/tmp/btc-priced-test-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
    }

    deinit {
        // A folder that can't be removed is left to the system's cleanup of temporary files.
        try? FileManager.default.removeItem(atPath: path)
    }
}
