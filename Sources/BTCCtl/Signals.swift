import Glibc
import Synchronization

/// The signals that `watch` cares for. A handler only notes that one came; the wait it interrupts looks at the note.
enum Signals {
    private static let continued = Atomic<Bool>(false)
    private static let ending = Atomic<Int32>(0)

    /// Begins to note SIGCONT, and the signals by which a user ends a program on a terminal.
    static func catchThem() {
        // Touched here first: a handler must not be the one to initialise them.
        continued.store(false, ordering: .relaxed)
        ending.store(0, ordering: .relaxed)
        handle(SIGCONT) { _ in Signals.continued.store(true, ordering: .relaxed) }
        for number in [SIGINT, SIGTERM, SIGHUP] { handle(number) { Signals.ending.store($0, ordering: .relaxed) } }
    }

    /// Whether we were stopped and continued since this was asked last.
    static func takeContinued() -> Bool {
        continued.exchange(false, ordering: .relaxed)
    }

    /// The signal that asks us to end, if one came.
    static var toEnd: Int32? {
        let number = ending.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// Ends as the signal would have, so that the shell sees what happened.
    static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        raise(number)
        exit(128 + number)
    }

    /// Without SA_RESTART, so that a wait ends.
    private static func handle(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = handler
        sigaction(number, &action, nil)
    }
}
