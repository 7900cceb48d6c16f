import BTCPriceCore
import Glibc
import Synchronization

/// The signals that a command which goes on for long cares for. A handler notes that one came and writes to a pipe, which every wait
/// looks at too: so none is lost between looking at the note and beginning to wait.
enum Signals {
    private static let continued = Atomic<Bool>(false)
    private static let ending = Atomic<Int32>(0)
    private static let pipeEnd = Atomic<Int32>(-1)

    /// Begins to note SIGCONT, SIGWINCH, and the signals by which a user ends a program on a terminal. One that we were started to
    /// ignore, as nohup(1) does, stays ignored.
    /// - Returns: A descriptor that is readable once a signal has come; -1 if there is none to be had.
    static func catchThem() -> Int32 {
        // Touched here first: a handler must not be the one to initialise them.
        continued.store(false, ordering: .relaxed)
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
        // A terminal of another size: nothing to note, only to look.
        handle(SIGWINCH) { _ in Signals.wake() }
        for number in [SIGINT, SIGTERM, SIGHUP] {
            handle(number) {
                Signals.ending.store($0, ordering: .relaxed)
                Signals.wake()
            }
        }
        return ends[0]
    }

    /// Has the end of a child wake whoever waits. Whoever started us may have had it ignored or blocked, and then no child's end would
    /// ever be told.
    static func catchChildren() {
        signal(SIGCHLD, SIG_DFL)
        handle(SIGCHLD) { _ in Signals.wake() }
        var children = sigset_t()
        sigemptyset(&children)
        sigaddset(&children, SIGCHLD)
        sigprocmask(SIG_UNBLOCK, &children, nil)
    }

    /// Whether we were stopped and continued since this was asked last.
    static func takeContinued() -> Bool {
        continued.exchange(false, ordering: .relaxed)
    }

    /// The signal that asks us to end, if one came.
    private static var toEnd: Int32? {
        let number = ending.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// Waits for so long, unless a signal comes.
    /// - Parameter descriptor: What ``catchThem()`` returned.
    static func wait(_ duration: Duration, on descriptor: Int32) {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if poll(&poller, 1, Int32(clamping: duration.wholeMilliseconds)) > 0 { drain(descriptor) }
    }

    /// Ends as the signal that asks for it would have, if one came.
    /// - Parameter finish: What is done before.
    static func endIfAsked(_ finish: () -> Void = {}) {
        guard let number = toEnd else { return }
        finish()
        end(by: number)
    }

    /// Empties the pipe: from here on a wait waits again.
    static func drain(_ descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) > 0 {}
    }

    /// Ends as the signal would have, so that the shell sees what happened.
    static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        raise(number)
        exit(128 + number)
    }

    private static func wake() {
        let before = errno
        var byte: UInt8 = 0
        write(pipeEnd.load(ordering: .relaxed), &byte, 1)
        errno = before
    }

    /// Without SA_RESTART, so that a write that stands still is interrupted.
    private static func handle(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
        var before = sigaction()
        sigaction(number, nil, &before)
        // SIG_IGN is the address 1, which can't be compared as a function.
        guard unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) != 1 else { return }
        var action = sigaction()
        action.__sigaction_handler.sa_handler = handler
        sigaction(number, &action, nil)
    }
}
