import CLinux
import Glibc

/// Who may change the daemon: root, the daemon's own user, and a group. The kernel's credentials of the connection decide
/// (SO_PEERCRED and SO_PEERGROUPS, unix(7)), supplementary groups included.
package struct Administrators: Sendable, Hashable {
    private let uid: UInt32
    private let gid: UInt32?

    /// - Parameters:
    ///   - uid: The daemon's own user; the default is this process's.
    ///   - group: The group's name. If the group does not exist, it has no members.
    package init(uid: UInt32? = nil, group: String? = nil) {
        self.uid = uid ?? geteuid()
        gid = group.flatMap(Self.groupID)
    }

    init(uid: UInt32, gid: UInt32?) {
        self.uid = uid
        self.gid = gid
    }

    /// Whether the client of a connection is an administrator.
    func include(peerOf descriptor: Int32) -> Bool {
        guard let (uid, gid) = Self.credentials(of: descriptor) else { return false }
        if include(uid: uid, groups: [gid]) { return true }
        return include(uid: uid, groups: Self.supplementaryGroups(of: descriptor))
    }

    func include(uid: UInt32, groups: [UInt32]) -> Bool {
        owns(uid: uid) || gid.map(groups.contains) == true
    }

    /// Whether a user is root or the daemon's own.
    func owns(uid: UInt32) -> Bool { uid == 0 || uid == self.uid }

    private static func credentials(of descriptor: Int32) -> (uid: UInt32, gid: UInt32)? {
        var credentials = clinux_credentials()
        return clinux_peer(descriptor, &credentials) == 0 ? (credentials.uid, credentials.gid) : nil
    }

    private static func supplementaryGroups(of descriptor: Int32) -> [UInt32] {
        // A process has at most 65,536 groups (NGROUPS_MAX, sysconf(3)).
        var groups = [UInt32](repeating: 0, count: 64)
        while true {
            let count = clinux_peer_groups(descriptor, &groups, groups.count)
            if count >= 0 { return Array(groups.prefix(Int(count))) }
            guard errno == ERANGE, groups.count < 65_536 else { return [] }
            groups = [UInt32](repeating: 0, count: groups.count * 4)
        }
    }

    private static func groupID(_ name: String) -> UInt32? {
        var (entry, found) = (group(), UnsafeMutablePointer<group>?.none)
        var (size, result) = (64 * 1024, ERANGE)
        // The members of a large group need more.
        while result == ERANGE, size <= 1 << 24 {
            var buffer = [CChar](repeating: 0, count: size)
            result = getgrnam_r(name, &entry, &buffer, size, &found)
            size *= 4
        }
        return result == 0 && found != nil ? entry.gr_gid : nil
    }
}
