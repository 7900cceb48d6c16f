import BTCPriceCore
import Glibc
import Synchronization

/// Signal handling for long-running commands. A handler sets a flag and writes to a pipe. Every wait also polls the pipe, so no
/// signal is lost between the check of the flag and the start of the wait.
enum Signals {
    private static let continued = Atomic<Bool>(false)
    private static let resized = Atomic<Bool>(false)
    private static let ending = Atomic<Int32>(0)
    private static let pipeEnd = Atomic<Int32>(-1)
    /// The value of ``ending`` after the key `q`.
    private static let quit: Int32 = -1

    /// Ends the process, with status 0, at the next check.
    static func quitByKey() {
        ending.store(quit, ordering: .relaxed)
        wake()
    }

    /// Whether SIGPIPE was ignored at the start. A write without a reader is then an error like any other.
    private static let hasIgnoredPipes = Atomic<Bool>(false)
    static var ignoresPipes: Bool { hasIgnoredPipes.load(ordering: .relaxed) }

    /// Makes a write without a reader fail with EPIPE: only standard output ends the process then. A handler, since a started command would
    /// inherit that the signal is ignored.
    static func catchPipes() {
        if !handle(SIGPIPE, { _ in }) { hasIgnoredPipes.store(true, ordering: .relaxed) }
    }

    /// Installs handlers for SIGCONT, SIGWINCH and the ending signals. A signal ignored at the start, as by nohup(1), stays ignored.
    /// - Returns: A descriptor that is readable after a signal; -1 if the pipe can't be created.
    static func catchThem() -> Int32 {
        // Initialise the statics here: a signal handler must not do it.
        continued.store(false, ordering: .relaxed)
        resized.store(false, ordering: .relaxed)
        ending.store(0, ordering: .relaxed)
        var ends: [Int32] = [-1, -1]
        if pipe(&ends) == 0 {
            for end in ends {
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            }
        }
        pipeEnd.store(ends[1], ordering: .relaxed)
        handle(SIGCONT) { _ in
            Signals.continued.store(true, ordering: .relaxed)
            Signals.wake()
        }
        handle(SIGWINCH) { _ in
            Signals.resized.store(true, ordering: .relaxed)
            Signals.wake()
        }
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            handle(number) {
                Signals.ending.store($0, ordering: .relaxed)
                Signals.wake()
                // If the signal came just before a write that waits for its reader, SIGALRM ends that.
                alarm(1)
            }
        }
        handle(SIGALRM) { _ in alarm(1) }
        return ends[0]
    }

    /// Installs a handler for SIGCHLD, so that the end of a child process ends a wait. The parent may have left SIGCHLD ignored or blocked;
    /// then the end of a child would not be reported.
    static func catchChildren() {
        signal(SIGCHLD, SIG_DFL)
        handle(SIGCHLD) { _ in Signals.wake() }
        var children = sigset_t()
        sigemptyset(&children)
        sigaddset(&children, SIGCHLD)
        sigprocmask(SIG_UNBLOCK, &children, nil)
    }

    /// Whether the process was stopped and continued since the last call.
    static func takeContinued() -> Bool {
        continued.exchange(false, ordering: .relaxed)
    }

    /// Whether the terminal's size has changed since the last call, if only for a moment.
    static func takeResized() -> Bool {
        resized.exchange(false, ordering: .relaxed)
    }

    /// Waits for this duration or until a signal comes.
    /// - Parameter descriptor: The result of ``catchThem()``.
    static func wait(_ duration: Duration, on descriptor: Int32) {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if poll(&poller, 1, Int32(clamping: duration.wholeMilliseconds)) > 0 { drain(descriptor) }
    }

    /// Ends the process by the signal, or the key, that requested it, if one came.
    /// - Parameter finish: Runs before the end.
    static func endIfAsked(_ finish: () -> Void = {}) {
        // The writes of `finish` must not end the process half way; a second signal does.
        let number = ending.exchange(0, ordering: .relaxed)
        guard number != 0 else { return }
        finish()
        end(by: number)
    }

    /// Empties the pipe, so that the next wait blocks again.
    static func drain(_ descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) > 0 {}
    }

    /// Ends the process by this signal, so that the shell sees the cause; with status 0 after the key `q`.
    static func end(by number: Int32) -> Never {
        if number == quit { exit(ExitStatus.success) }
        TerminalMode.release()
        signal(number, SIG_DFL)
        raise(number)
        exit(128 + number)
    }

    /// Ends a wait. A signal handler may call it.
    static func wake() {
        let before = errno
        var byte: UInt8 = 0
        _ = write(pipeEnd.load(ordering: .relaxed), &byte, 1)
        errno = before
    }

    /// Installs a handler without SA_RESTART, so that the signal interrupts a blocked write.
    /// - Returns: False if the signal is ignored, and stays so.
    @discardableResult
    static func handle(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) -> Bool {
        var before = sigaction()
        sigaction(number, nil, &before)
        // SIG_IGN is the address 1, which can't be compared as a function.
        guard unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) != 1 else { return false }
        var action = sigaction()
        action.__sigaction_handler.sa_handler = handler
        sigaction(number, &action, nil)
        return true
    }
}
