import FoundationEssentials
import Glibc

/// The folder with real bodies and real prices next to the repository. A test that needs it is skipped with a message if it is
/// absent.
package enum Shared {
    /// `../shared`, relative to the repository.
    package static let folder: String = {
        // Tests/TestSupport/Shared.swift, three levels below the repository.
        var parts = #filePath.split(separator: "/")
        parts.removeLast(4)
        return "/" + parts.joined(separator: "/") + "/shared"
    }()

    /// Whether the folder is present.
    package static let isPresent = access(folder + "/fixtures", R_OK) == 0

    /// The message of a skipped test.
    package static let absence = "../shared is absent: its real bodies and prices are not tested here"

    /// A file's bytes.
    package static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: "\(folder)/\(path)")))
    }
}
