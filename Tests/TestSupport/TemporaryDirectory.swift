import FoundationEssentials
import Glibc

/// A folder of a test's own, gone with it.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() {
        var template = Array("/tmp/btc-priced-test-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
    }

    deinit {
        // What can't be removed is left for the machine's own cleaning.
        try? FileManager.default.removeItem(atPath: path)
    }
}
