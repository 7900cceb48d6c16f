import Dispatch
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Systemd

/// Tests with the real libsystemd and a test socket as the other end. Serialised, because they set the process's environment.
@Suite(.serialized) struct SystemdTests {
    /// The socket in the place of systemd's.
    final class NotifySocket {
        private let directory = TemporaryDirectory()
        private let descriptor: Int32
        let path: String

        init() {
            path = "\(directory.path)/notify"
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { [descriptor] in
                    _ = bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }

        deinit { close(descriptor) }

        func received() -> String? {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
        }
    }

    @Test func `systemd receives the status`() {
        let socket = NotifySocket()
        setenv("NOTIFY_SOCKET", socket.path, 1)
        defer { unsetenv("NOTIFY_SOCKET") }
        let manager = ServiceManager()
        manager.ready(status: "up\nSTOPPING=1")
        manager.status("68901.23")
        manager.alive()
        manager.stopping()
        // A reload that was under way.
        manager.reloading()
        manager.ready(status: "up")
        Outbox.notifications.flush(within: .seconds(30))
        #expect(socket.received() == "READY=1\nSTATUS=up STOPPING=1")
        #expect(socket.received() == "STATUS=68901.23")
        #expect(socket.received() == "WATCHDOG=1")
        #expect(socket.received() == "STOPPING=1")
        #expect(socket.received() == nil)
    }

    @Test func `without systemd nothing happens`() {
        unsetenv("NOTIFY_SOCKET")
        ServiceManager().ready(status: "up")
        Outbox.notifications.flush(within: .seconds(30))
        #expect(ServiceManager().watchdogInterval == nil)
    }

    @Test func `a journal without a reader does not block, and lost lines are counted`() {
        let (outbox, proceed) = (Outbox(capacity: 3), DispatchSemaphore(value: 0))
        let seen = Mutex<[Int]>([])
        outbox.send { _ in proceed.wait() }
        for number in 1...5 {
            outbox.send { dropped in seen.withLock { $0 += [number, dropped] } }
        }
        outbox.flush(within: .milliseconds(1))
        #expect(seen.withLock(\.self) == [])
        proceed.signal()
        outbox.flush(within: .seconds(30))
        outbox.send { dropped in seen.withLock { $0 += [6, dropped] } }
        outbox.flush(within: .seconds(30))
        #expect(seen.withLock(\.self) == [1, 0, 2, 0, 6, 3])
    }

    @Test func `a log that is not read does not hold up notifications`() {
        let (socket, proceed) = (NotifySocket(), DispatchSemaphore(value: 0))
        setenv("NOTIFY_SOCKET", socket.path, 1)
        defer {
            unsetenv("NOTIFY_SOCKET")
            proceed.signal()
        }
        Outbox.log.send { _ in proceed.wait() }
        ServiceManager().alive()
        Outbox.notifications.flush(within: .seconds(30))
        #expect(socket.received() == "WATCHDOG=1")
    }

    @Test func `the watchdog's interval is systemd's`() {
        setenv("WATCHDOG_USEC", "30000000", 1)
        setenv("WATCHDOG_PID", "\(getpid())", 1)
        defer {
            unsetenv("WATCHDOG_USEC")
            unsetenv("WATCHDOG_PID")
        }
        #expect(ServiceManager().watchdogInterval == .seconds(30))
        setenv("WATCHDOG_PID", "1", 1)
        #expect(ServiceManager().watchdogInterval == nil)
    }

    @Test func `no socket was passed`() throws {
        #expect(try PassedSockets.listeningStream() == nil)
        setenv("LISTEN_PID", "\(getpid())", 1)
        setenv("LISTEN_FDS", "2", 1)
        defer {
            unsetenv("LISTEN_PID")
            unsetenv("LISTEN_FDS")
        }
        #expect(throws: PassedSockets.Failure.self) { try PassedSockets.listeningStream() }
        #expect(PassedSockets.notOurs == nil)
        setenv("LISTEN_PID", "1", 1)
        #expect(try PassedSockets.listeningStream() == nil)
        #expect(PassedSockets.notOurs?.hasPrefix("systemd passed sockets for process 1, and this one is ") == true)
    }

    @Test func `credentials are files`() throws {
        let directory = TemporaryDirectory()
        let credentials = Credentials(environment: ["CREDENTIALS_DIRECTORY": directory.path])
        #expect(try credentials.secret("key") == nil)
        func write(_ bytes: [UInt8]) {
            let file = open("\(directory.path)/key", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            _ = Glibc.write(file, bytes, bytes.count)
            close(file)
        }
        write(Array(" abc123\n".utf8))
        #expect(try credentials.secret("key") == "abc123")
        write(Array("\n".utf8))
        #expect(try credentials.secret("key") == nil)
        write(Array("abc\u{1}123\n".utf8))
        #expect(
            throws: Credentials.Failure(
                description: "the credential \(directory.path)/key contains a control character")
        ) {
            try credentials.secret("key")
        }
        // As systemd-creds(1) writes it: lines of base64.
        let line = String(repeating: "Ab1+", count: 17)
        write(Array("\(line)\n\(line)\nAb0/Cw==\n".utf8))
        #expect(
            throws: Credentials.Failure(
                description:
                    "the credential \(directory.path)/key is encrypted: LoadCredential= passes it as it is, so the unit needs LoadCredentialEncrypted="
            )
        ) {
            try credentials.secret("key")
        }
        // A long key is on one line.
        write(Array("\(line)\(line)\n".utf8))
        #expect(try credentials.secret("key") == line + line)
        write([0xFF])
        #expect(throws: Credentials.Failure.self) { try credentials.secret("key") }
        write(Array(repeating: 0x61, count: 5000))
        #expect(throws: Credentials.Failure.self) { try credentials.secret("key") }
        #expect(try Credentials(environment: [:]).secret("key") == nil)
    }

    @Test func `standard error is the journal only if it is the same stream`() {
        #expect(!JournalLogHandler.isConnected(environment: [:]))
        #expect(!JournalLogHandler.isConnected(environment: ["JOURNAL_STREAM": "1:2"]))
        var status = stat()
        #expect(fstat(STDERR_FILENO, &status) == 0)
        #expect(JournalLogHandler.isConnected(environment: ["JOURNAL_STREAM": "\(status.st_dev):\(status.st_ino)"]))
    }

    @Test func `levels are syslog's`() {
        #expect(Logger.Level.allCases.map(\.journalPriority) == [7, 7, 6, 5, 4, 3, 2])
    }

    @Test func `a missing journal does no harm`() {
        var logger = Logger(label: "t", factory: JournalLogHandler.init(identifier:))
        logger[metadataKey: "price"] = "1"
        logger.info("nobody reads this", metadata: ["source": "x"])
    }
}
