import BTCPriceCore
import BTCPriceSocket
import Glibc
import Synchronization

/// Standard output and standard error, unbuffered: the reader of a pipe gets each line at once.
enum Output {
    /// Returns the value of an environment variable, or `nil` if it is not set.
    static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// Whether this process's locale uses UTF-8.
    static var isUnicode: Bool { isUnicode(environment: environment) }

    /// Whether the environment's locale uses UTF-8 (locale(7): the first variable that is set counts).
    static func isUnicode(environment: (String) -> String?) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment).filter { !$0.isEmpty }
        let locale = (names.first ?? "").lowercased()
        return locale.start(of: "utf-8") != nil || locale.start(of: "utf8") != nil
    }

    /// The version of the printed JSON. It changes if the meaning of a field changes.
    static let jsonVersion: Int64 = 1

    /// Opens /dev/null on the standard descriptors that are closed, so that no other file gets their numbers. Using them still fails.
    static func holdStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Ends the process by SIGPIPE, as a write would, if the reader of standard output is gone. poll(2) reports that for a pipe as POLLERR,
    /// for a socket, such as tmux and Node.js use, as POLLHUP.
    static func endIfUnread() {
        var poller = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        if poll(&poller, 1, 0) > 0, poller.revents & Int16(POLLERR | POLLHUP) != 0 { Signals.end(by: SIGPIPE) }
    }

    static func line(_ text: String) {
        write("\(text)\n", to: STDOUT_FILENO)
    }

    /// Prints an error.
    static func complain(_ text: String) {
        write("\(text)\n", to: STDERR_FILENO)
    }

    /// Whether ``note(_:)`` prints nothing.
    static var isQuiet: Bool {
        get { quiet.load(ordering: .relaxed) }
        set { quiet.store(newValue, ordering: .relaxed) }
    }
    private static let quiet = Atomic<Bool>(false)

    /// Prints what is to be known beside the output, unless the user wants no notes.
    static func note(_ text: String) {
        if !isQuiet { complain(text) }
    }

    /// A state as one JSON object: the version, the interface's `State`, the age, and after a `wait` the condition that holds.
    static func json(
        _ message: StateMessage, at now: ObservationTime, condition: PriceCondition.Kind? = nil
    ) -> String {
        json(message.json(at: now), condition.map { ["condition": .string($0.rawValue)] } ?? [:])
    }

    /// One JSON object: the version, and these members.
    static func json(_ parts: JSONObject...) -> String {
        var object: JSONObject = ["version": .integer(jsonVersion)]
        for part in parts { for member in part.members { object[member.name] = member.value } }
        return JSON.object(object).text
    }

    /// A response as one JSON object: the version, and the interface's value under its name.
    static func json(_ name: String, _ value: JSON) -> String {
        json([name: value])
    }

    static func json(_ complaint: Complaint) -> String {
        json([
            "error": .string(complaint.word), "message": .string(complaint.message),
            "exitStatus": .integer(Int64(complaint.status)),
        ])
    }

    /// Reports a complaint as JSON on standard output, or as text on standard error.
    static func tell(_ complaint: Complaint, json: Bool) {
        if json { line(Self.json(complaint)) } else { complain("btcctl: \(complaint.message)") }
    }

    /// Runs a command, and reports the complaint that ends it.
    /// - Returns: The exit status.
    static func status(json: Bool = false, of command: () throws(Complaint) -> Int32) -> Int32 {
        do throws(Complaint) {
            return try command()
        } catch {
            tell(error, json: json)
            return error.status
        }
    }

    static func write(_ text: String, to descriptor: Int32) { write(Array(text.utf8), to: descriptor) }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            let number = errno
            // A reader that does not read must not keep the process from ending. A signal also ends a write in the middle.
            Signals.endIfAsked()
            if count >= 0 {
                written += count
                continue
            }
            switch number {
            case EINTR: break
            case EAGAIN:
                var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&poller, 1, -1)
            default:
                // A full disk, for example. The price matters more than standard error.
                guard descriptor == STDOUT_FILENO else { return }
                if number == EPIPE, !Signals.ignoresPipes { Signals.end(by: SIGPIPE) }
                complain("btcctl: cannot write: \(String(cString: strerror(number)))")
                exit(ExitStatus.outputFailed)
            }
        }
    }
}
