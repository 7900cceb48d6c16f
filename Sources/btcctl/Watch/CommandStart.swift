// Only this thread uses C's `environ`.
@preconcurrency import Glibc

/// Starts a command in a child process.
enum CommandStart {
    struct Failure: Error {
        let reason: String
    }

    /// Starts `sh -c command` with standard input from /dev/null and this process's standard output and error.
    /// - Parameter adding: Variables to add to this process's environment.
    /// - Returns: The process ID of the child.
    static func shell(_ command: String, adding: [(name: String, value: String)]) throws(Failure) -> pid_t {
        // Set in this process's environment, so that the existing variables are inherited byte for byte.
        for (name, value) in adding { setenv(name, value, 1) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)

        var process: pid_t = -1
        let words: [String?] = ["sh", "-c", command, nil]
        let arguments = words.map { $0.flatMap { strdup($0) } }
        defer { for argument in arguments { free(argument) } }
        let number = posix_spawn(&process, "/bin/sh", &actions, nil, arguments, environ)
        guard number == 0 else { throw Failure(reason: String(cString: strerror(number))) }
        return process
    }
}
