import Glibc

/// Where a user's own daemon has its runtime files.
package enum UserDirectory {
    /// A place, in the order of preference.
    package struct Candidate {
        package let directory: String
        /// The directory that must belong to the user: this one or the one that contains it.
        package let checked: String
        /// Whom that belongs to; `nil` if it can't be seen.
        package let owner: UInt32?
    }

    /// `$XDG_RUNTIME_DIR/btc-priced`; without that variable, as in cron(8) and after su(1), `/run/user/UID/btc-priced` if there is the
    /// user's `/run/user/UID`, then `/tmp/btc-priced-UID` if it exists.
    package static func candidates(environment: (String) -> String?, uid: UInt32) -> [Candidate] {
        if let base = environment("XDG_RUNTIME_DIR"), base.hasPrefix("/") {
            return [Candidate(directory: "\(base)/btc-priced", checked: base, owner: owner(base, followsLink: true))]
        }
        let (base, shared) = ("/run/user/\(uid)", shared(uid: uid))
        return [
            Candidate(directory: "\(base)/btc-priced", checked: base, owner: owner(base, followsLink: true)),
            Candidate(directory: shared, checked: shared, owner: owner(shared, followsLink: false)),
        ].filter { $0.owner != nil }
    }

    /// The product's directory among a user's files of a kind: in `variable`, or else below the home directory. A relative path does not
    /// count (XDG Base Directory Specification). `nil` without either.
    package static func folder(_ variable: String, _ fallback: String, _ environment: [String: String]) -> String? {
        let absolute = { (name: String) in environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        return (absolute(variable) ?? absolute("HOME").map { "\($0)/\(fallback)" }).map { "\($0)/\(Product.name)" }
    }

    /// The directory of a user without `/run/user/UID`. Others may have made the name.
    package static func shared(uid: UInt32) -> String { "/tmp/btc-priced-\(uid)" }

    /// The directory of a user's daemon: the first candidate that belongs to the user, or the one to complain about.
    package static func standard(environment: (String) -> String?, uid: UInt32) -> String {
        let candidates = candidates(environment: environment, uid: uid)
        let own = candidates.first { $0.owner == nil || $0.owner == uid } ?? candidates.first
        return own?.directory ?? shared(uid: uid)
    }

    /// The owner of a directory; `nil` if there is none or it can't be seen.
    /// - Parameter followsLink: False where others may have made the name: a link there is no directory.
    private static func owner(_ path: String, followsLink: Bool) -> UInt32? {
        var status = stat()
        guard (followsLink ? stat(path, &status) : lstat(path, &status)) == 0, status.st_mode & S_IFMT == S_IFDIR
        else { return nil }
        return status.st_uid
    }
}
