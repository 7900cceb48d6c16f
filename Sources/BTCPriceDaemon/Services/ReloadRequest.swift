import BTCPriceCore
import BTCPriceSocket
import Files
import Glibc

/// `btc-priced --reload`: makes a running daemon read its configuration again, and waits until it is in use. systemctl(1) returns when the
/// command of ExecReload= ends, so without the wait the next command would still find the old configuration.
struct ReloadRequest {
    /// Why the configuration is not in use.
    enum Failure: Error {
        /// There is no such process, it may not be signalled, or SIGHUP would end it.
        case notSignalled(reason: String)
        case refused(reason: String)
        case timedOut
        case ended

        func text(of pid: Int32) -> String {
            switch self {
            case .notSignalled(let reason): "process \(pid) is not signalled: \(reason)"
            case .refused(let reason): "the new configuration is refused, and the old one stays: \(reason)"
            case .timedOut: "process \(pid) has not reloaded within \(ReloadRequest.longest.components.seconds) s"
            case .ended: "process \(pid) has ended instead of reloading"
            }
        }
    }

    /// Less than TimeoutStartSec= of the unit, after which systemd ends this program.
    static let longest = Duration.seconds(25)
    private static let pause = Duration.milliseconds(20)

    let pid: Int32
    /// Where the daemon answers.
    let socket: String

    /// - Returns: Why the daemon was only signalled; `nil` if the configuration is in use.
    func run() async throws(Failure) -> String? {
        let before = status()
        switch before {
        case .success(let status):
            guard status.pid == Int64(pid) else {
                throw .notSignalled(reason: "process \(status.pid) answers at \(socket)")
            }
            guard status.reloads != nil else {
                throw .notSignalled(reason: "it runs on a terminal, or has an earlier version: restart it instead")
            }
        case .failure(let unknown):
            // A number from a file may be another process's by now.
            guard let name = Self.name(of: pid) else {
                throw .notSignalled(reason: "\(String(cString: strerror(ESRCH))), or /proc does not show it")
            }
            guard name == Self.name(of: getpid()) else {
                throw .notSignalled(reason: "it is '\(name.printable)', and no daemon can be asked: \(unknown.reason)")
            }
        }
        guard kill(pid, SIGHUP) == 0 else { throw .notSignalled(reason: String(cString: strerror(errno))) }
        let first: StatusMessage.Reloads
        switch before {
        case .success(let status): first = status.reloads ?? StatusMessage.Reloads()
        case .failure(let unknown): return unknown.reason
        }
        let clock = ContinuousClock()
        let end = clock.now.advanced(by: Self.longest)
        while clock.now < end {
            try? await Task.sleep(for: Self.pause)
            // One that had begun before may have read the old file.
            if case .success(let status) = status(), status.pid == Int64(pid), let reloads = status.reloads,
                reloads.done > first.begun
            {
                if let reason = reloads.failure { throw .refused(reason: reason) }
                return nil
            }
            if kill(pid, 0) != 0 { throw .ended }
        }
        throw .timedOut
    }

    /// The name of a process, as proc(5) has it; `nil` if there is none, or it is hidden.
    private static func name(of pid: Int32) -> String? {
        guard let bytes = try? FileSystem.read("/proc/\(pid)/comm") else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private struct Unknown: Error {
        let reason: String
    }

    private func status() -> Result<StatusMessage, Unknown> {
        do throws(ClientError) {
            var connection = try PriceConnection(path: socket, timeout: .seconds(2))
            return .success(try connection.getStatus())
        } catch {
            return .failure(Unknown(reason: "\(error)"))
        }
    }
}
