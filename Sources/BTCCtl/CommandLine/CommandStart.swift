// `environ` is a variable of C's, which only this thread uses.
@preconcurrency import Glibc

/// Starts a command beside us.
enum CommandStart {
    /// Why it could not be started.
    struct Failure: Error {
        let reason: String
    }

    /// Starts `sh -c command` with nothing to read, on our own standard output and error.
    /// - Parameter adding: Variables beside those of our own environment.
    /// - Returns: Its process, a child of ours.
    static func shell(_ command: String, adding: [(name: String, value: String)]) throws(Failure) -> pid_t {
        // Through our own environment, so that what is in it already is handed on byte for byte.
        for (name, value) in adding { setenv(name, value, 1) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)

        var process: pid_t = -1
        let number = withStrings(["sh", "-c", command]) { arguments in
            posix_spawn(&process, "/bin/sh", &actions, nil, arguments, environ)
        }
        guard number == 0 else { throw Failure(reason: String(cString: strerror(number))) }
        return process
    }

    /// A list of C strings that ends with a null pointer.
    private static func withStrings<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = texts.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers + [nil])
    }
}
