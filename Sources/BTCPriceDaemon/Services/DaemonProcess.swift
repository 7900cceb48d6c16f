import BTCPriceAPI
import FoundationEssentials
import Glibc

/// Another process that runs this program, for `--reload`.
struct DaemonProcess {
    /// The process can't be made to reload.
    struct Failure: Error, CustomStringConvertible {
        /// The reason, and what to do if there is something.
        let description: String
    }

    let id: pid_t
    /// Its command line, without the program's name.
    let arguments: [String]
    /// The environment that it was started with.
    let environment: [String: String]
    /// The user, the group and the supplementary groups that it runs as.
    let uid: UInt32
    private let gid: UInt32
    private let groups: [UInt32]

    /// Reads the process from proc(5).
    /// - Throws: ``Failure`` if it is not this program, would be stopped by SIGHUP, or can't be read.
    init(_ id: pid_t) throws(Failure) {
        self.id = id
        var directory = stat()
        guard let (name, fields) = Self.status(of: "\(id)"), stat("/proc/\(id)", &directory) == 0 else {
            throw Failure(description: "there is no process \(id)")
        }
        (uid, gid) = (directory.st_uid, directory.st_gid)
        guard name == Self.status(of: "self")?.name else {
            throw Failure(description: "process \(id) is not \(Product.name)")
        }
        guard fields.count > 4, fields[4] == "0" else {
            throw Failure(
                description:
                    "process \(id) has a terminal, so SIGHUP would stop it. Stop it there, and start it again with the new configuration"
            )
        }
        guard let arguments = Self.list("cmdline", of: id), let entries = Self.list("environ", of: id) else {
            let advice = uid == getuid() ? "" : ", it belongs to user \(uid): run this as that user, or as root"
            throw Failure(description: "process \(id) can't be read\(advice)")
        }
        let status = Self.contents("/proc/\(id)/status").map { String(decoding: $0, as: UTF8.self) } ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("Groups:") } ?? ""
        groups = line.split(whereSeparator: \.isWhitespace).dropFirst().compactMap { UInt32($0) }
        self.arguments = Array(arguments.dropFirst())
        environment = Dictionary(
            entries.map { entry in
                let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
            }, uniquingKeysWith: { first, _ in first })
    }

    /// Changes to the process's working directory, from which it resolves a relative path.
    func enterDirectory() throws(Failure) {
        guard chdir("/proc/\(id)/cwd") == 0 else { throw failure("the working directory of process \(id)") }
    }

    /// Becomes the process's user, for good: what root can read says nothing about what the process can.
    func takeUser() throws(Failure) {
        guard uid != getuid() else { return }
        guard setgroups(groups.count, groups) == 0, setgid(gid) == 0, setuid(uid) == 0 else {
            throw failure("the user \(uid) of process \(id)")
        }
    }

    /// Makes the process reload its configuration.
    func reload() throws(Failure) {
        guard kill(id, SIGHUP) == 0 else { throw failure("process \(id)") }
    }

    /// The failure of the last system call.
    private func failure(_ what: String) -> Failure {
        Failure(description: "\(what) can't be used: \(String(cString: strerror(errno)))")
    }

    /// The strings of a file in which each one ends with a zero byte; `nil` if it can't be read.
    private static func list(_ file: String, of id: pid_t) -> [String]? {
        contents("/proc/\(id)/\(file)")?.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// The name of a process, and its state, three numbers, the terminal and more (proc_pid_stat(5)); `nil` if there is no such process.
    private static func status(of process: String) -> (name: Substring, fields: [Substring])? {
        guard let bytes = contents("/proc/\(process)/stat") else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")") else { return nil }
        return (text[open..<close].dropFirst(), text[close...].dropFirst().split(separator: " "))
    }

    private static func contents(_ path: String) -> Data? { try? Data(contentsOf: URL(filePath: path)) }
}
