// Nothing changes C's `environ`.
@preconcurrency package import Glibc

/// Starts a command in a child process.
package enum CommandStart {
    package struct Failure: Error {
        package let reason: String

        package init(reason: String) { self.reason = reason }
    }

    /// Starts `sh -c command` with standard input from /dev/null and this process's standard output and error.
    /// - Parameter adding: Variables to add to this process's environment.
    /// - Returns: The process ID of the child.
    package static func shell(_ command: String, adding: [(name: String, value: String)]) throws(Failure) -> pid_t {
        try start(["/bin/sh", "-c", command], adding: adding)
    }

    /// Starts a program with standard input from /dev/null.
    /// - Parameters:
    ///   - words: The path of the program, or a name that is looked for in `PATH`, and its arguments.
    ///   - adding: Variables to add to this process's environment.
    ///   - output: Its standard output; standard error goes to /dev/null then. `nil` for this process's own.
    ///   - leadsGroup: Whether it leads a process group of its own, with no signal blocked, and none ignored that a service handles.
    /// - Returns: The process ID of the child.
    package static func start(
        _ words: [String], adding: [(name: String, value: String)] = [], output: Int32? = nil, leadsGroup: Bool = false
    ) throws(Failure) -> pid_t {
        guard let program = words.first else { throw Failure(reason: "no program is named") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        if let output {
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        if leadsGroup {
            var (none, handled) = (sigset_t(), sigset_t())
            sigemptyset(&none)
            sigemptyset(&handled)
            for number in [SIGPIPE, SIGTERM, SIGINT] { sigaddset(&handled, number) }
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setsigdefault(&attributes, &handled)
            posix_spawnattr_setflags(
                &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        }
        var process: pid_t = -1
        let arguments = words.map { strdup($0) } + [nil]
        let added = adding.map { strdup("\($0.name)=\($0.value)") }
        defer { for copy in arguments + added { free(copy) } }
        let number = posix_spawnp(
            &process, program, &actions, &attributes, arguments, inherited(without: adding.map(\.name)) + added + [nil]
        )
        guard number == 0 else { throw Failure(reason: String(cString: strerror(number))) }
        return process
    }

    /// The path of another program of the project: the one beside this program, or else its name, to be looked for in `PATH`.
    package static func path(of program: String) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let beside = own.lastIndex(of: "/").map { "\(own[...$0])\(program)" } ?? program
        return access(beside, X_OK) == 0 ? beside : program
    }

    /// The entries of this process's environment, byte for byte, without these names.
    private static func inherited(without names: [String]) -> [UnsafeMutablePointer<CChar>?] {
        var entries: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let entry = next.pointee {
            if !names.contains(where: { strncmp(entry, "\($0)=", $0.utf8.count + 1) == 0 }) { entries.append(entry) }
            next += 1
        }
        return entries
    }
}

/// How a command ended.
package enum CommandEnd: Equatable {
    case status(Int32)
    case signal(Int32)

    /// - Parameter status: As waitpid(2) sets it: the low seven bits are the signal; if they are 0, the exit status is above them.
    package init(waitStatus status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
    }

    /// Collects the end of a child process.
    /// - Parameter options: Those of waitpid(2).
    /// - Returns: `nil` if it runs.
    package init?(of process: pid_t, _ options: Int32) {
        var status: Int32 = 0
        var found = waitpid(process, &status, options)
        while found < 0, errno == EINTR { found = waitpid(process, &status, options) }
        if found == 0 { return nil }
        // ECHILD: its status was collected elsewhere.
        self.init(waitStatus: found < 0 ? 0 : status)
    }

    /// `with status 3`, `by signal 9`
    package var text: String {
        switch self {
        case .status(let status): "with status \(status)"
        case .signal(let number): "by signal \(number)"
        }
    }
}
