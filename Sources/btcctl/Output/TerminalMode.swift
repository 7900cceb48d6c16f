import Glibc
import Synchronization

/// The mode of the terminal while a screen is drawn: keys are read at once and not shown, and `q` ends the process. The former mode is
/// restored at every end and at a stop (Ctrl-Z); call ``take()`` again when the process is continued.
enum TerminalMode {
    private static let isTaken = Atomic<Bool>(false)
    private static let isReading = Atomic<Bool>(false)
    private static let hadEcho = Atomic<Bool>(true)

    /// Takes the terminal, if the process is in its foreground.
    static func take() {
        // Initialise the statics here: a signal handler must not do it.
        _ = (isTaken.load(ordering: .relaxed), isReading.load(ordering: .relaxed))
        var mode = termios()
        guard tcgetpgrp(STDIN_FILENO) == getpgrp(), tcgetattr(STDIN_FILENO, &mode) == 0,
            mode.c_lflag & tcflag_t(ICANON) != 0
        else { return }
        hadEcho.store(mode.c_lflag & tcflag_t(ECHO) != 0, ordering: .relaxed)
        isTaken.store(true, ordering: .relaxed)
        // Control keys still send signals.
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &mode)
        Signals.handle(SIGTSTP) { _ in TerminalMode.stop() }
        guard !isReading.exchange(true, ordering: .relaxed) else { return }
        atexit { TerminalMode.release() }
        var thread = pthread_t()
        pthread_create(&thread, nil, { _ in TerminalMode.readKeys() }, nil)
    }

    /// Restores the mode. A signal handler may call it.
    static func release() {
        var mode = termios()
        guard isTaken.load(ordering: .relaxed), tcgetpgrp(STDIN_FILENO) == getpgrp(),
            tcgetattr(STDIN_FILENO, &mode) == 0
        else { return }
        isTaken.store(false, ordering: .relaxed)
        mode.c_lflag |= tcflag_t(hadEcho.load(ordering: .relaxed) ? ICANON | ECHO : ICANON)
        tcsetattr(STDIN_FILENO, TCSANOW, &mode)
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
        var key: UInt8 = 0
        while read(STDIN_FILENO, &key, 1) == 1 {
            if key == UInt8(ascii: "q") { Signals.quitByKey() }
        }
        isReading.store(false, ordering: .relaxed)
        return nil
    }
}
