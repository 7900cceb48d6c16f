import Glibc
import Synchronization

/// The mode of the terminal while a screen is drawn: keys are read at once and not shown. The former mode is restored at every end and at a
/// stop (Ctrl-Z); call ``take(_:)`` again when the process is continued.
enum TerminalMode {
    private static let isTaken = Atomic<Bool>(false)
    private static let isReading = Atomic<Bool>(false)
    private static let hadEcho = Atomic<Bool>(true)
    /// Whether the alternate screen is shown.
    private static let isWhole = Atomic<Bool>(false)
    /// Whether ``takeInput()`` has the keys. Otherwise, the key `q` ends the process.
    private static let hasKeys = Atomic<Bool>(false)
    private static let hasExitHandler = Atomic<Bool>(false)
    private static let input = Mutex<[UInt8]>([])
    /// The most bytes of keys that wait: a key that is held down does not fill the memory.
    private static let mostInput = 1024

    /// The alternate screen (xterm, 1049), without a cursor (DECTCEM).
    private static let enter: StaticString = "\u{1B}[?1049h\u{1B}[?25l"
    /// The end of a synchronized update, plain characters, the cursor, and the screen as it was.
    private static let leave: StaticString = "\u{1B}[?2026l\u{1B}[m\u{1B}[?25h\u{1B}[?1049l"

    /// Takes the terminal, if the process is in its foreground.
    /// - Parameter extent: Of the screen. If it is whole, ``takeInput()`` has the keys.
    static func take(_ extent: Screen.Extent = .lines) {
        // Initialise the statics here: a signal handler must not do it.
        _ = (isTaken.load(ordering: .relaxed), isReading.load(ordering: .relaxed), isWhole.load(ordering: .relaxed))
        if !hasExitHandler.exchange(true, ordering: .relaxed) { atexit { TerminalMode.release() } }
        if extent == .whole {
            // A job in the background waits for `fg`, as at any read of a terminal. Without a shell, nothing stops it (POSIX: an orphaned
            // process group), and it ends.
            if tcgetpgrp(STDIN_FILENO) != getpgrp() { raise(SIGTTIN) }
            guard tcgetpgrp(STDIN_FILENO) == getpgrp() else {
                Output.complain("btcctl: the terminal belongs to another job: start this in the foreground")
                exit(ExitStatus.usage)
            }
            hasKeys.store(true, ordering: .relaxed)
            isWhole.store(true, ordering: .relaxed)
            write(enter)
        }
        Signals.handle(SIGTSTP) { _ in TerminalMode.stop() }
        var mode = termios()
        guard tcgetpgrp(STDIN_FILENO) == getpgrp(), tcgetattr(STDIN_FILENO, &mode) == 0,
            mode.c_lflag & tcflag_t(ICANON) != 0
        else { return }
        hadEcho.store(mode.c_lflag & tcflag_t(ECHO) != 0, ordering: .relaxed)
        isTaken.store(true, ordering: .relaxed)
        // Control keys still send signals.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &mode)
        guard !isReading.exchange(true, ordering: .relaxed) else { return }
        var thread = pthread_t()
        pthread_create(&thread, nil, { _ in TerminalMode.readKeys() }, nil)
    }

    /// Restores the mode. A signal handler may call it.
    static func release() {
        if isWhole.exchange(false, ordering: .relaxed) { write(leave) }
        var mode = termios()
        guard isTaken.load(ordering: .relaxed), tcgetpgrp(STDIN_FILENO) == getpgrp(),
            tcgetattr(STDIN_FILENO, &mode) == 0
        else { return }
        isTaken.store(false, ordering: .relaxed)
        mode.c_lflag |= tcflag_t(hadEcho.load(ordering: .relaxed) ? ICANON | ECHO : ICANON)
        tcsetattr(STDIN_FILENO, TCSANOW, &mode)
    }

    /// The bytes of the keys that were pressed since the last call. A key ends a wait as a signal does.
    static func takeInput() -> [UInt8] {
        input.withLock { bytes in
            defer { bytes = [] }
            return bytes
        }
    }

    /// Stops the process, as SIGTSTP does.
    private static func stop() {
        release()
        signal(SIGTSTP, SIG_DFL)
        var stops = sigset_t()
        sigemptyset(&stops)
        sigaddset(&stops, SIGTSTP)
        raise(SIGTSTP)
        // The handler's own signal is blocked until here.
        pthread_sigmask(SIG_UNBLOCK, &stops, nil)
    }

    private static func readKeys() -> UnsafeMutableRawPointer? {
        // The other thread handles the signals. With SIGTTIN blocked, a read in the background fails instead of stopping the process.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        var bytes = [UInt8](repeating: 0, count: 64)
        while true {
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            guard count > 0 else { break }
            if hasKeys.load(ordering: .relaxed) {
                input.withLock { if $0.count < mostInput { $0 += bytes.prefix(count) } }
                Signals.wake()
            } else if bytes.prefix(count).contains(UInt8(ascii: "q")) {
                Signals.quitByKey()
            }
        }
        isReading.store(false, ordering: .relaxed)
        return nil
    }

    private static func write(_ text: StaticString) {
        _ = Glibc.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }
}
