import FoundationEssentials
import Glibc

/// The folder with real bodies and real prices beside the repository. A test that needs it is skipped with a word where it is
/// absent.
package enum Shared {
    /// `../shared`, seen from the repository.
    package static let folder: String = {
        // Tests/TestSupport/Shared.swift, three levels below the repository.
        var parts = #filePath.split(separator: "/")
        parts.removeLast(4)
        return "/" + parts.joined(separator: "/") + "/shared"
    }()

    /// Whether it is there.
    package static let isPresent = access(folder + "/fixtures", R_OK) == 0

    /// What a test that is skipped for it says.
    package static let absence = "../shared is absent: its real bodies and prices are not tested here"

    /// A file's bytes.
    package static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: "\(folder)/\(path)")))
    }
}
