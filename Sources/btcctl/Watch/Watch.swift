import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// Reads the codes of currencies, separated by commas.
private func codes(of text: String) throws(UsageError) -> [String] {
    var codes: [String] = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
        let code = try currencyCode(String(word))
        if !codes.contains(code) { codes.append(code) }
    }
    return codes
}

/// `btcctl watch`: follows the daemon across its restarts and passes each new state to a sink.
struct Watch {
    static let verb = Verb(
        command: Command(
            "watch", "Show the price at every tick, until stopped.",
            details: """
                Examples:
                  btcctl watch
                  btcctl watch -c EUR,USD
                  btcctl watch --bar waybar
                  btcctl watch --raw --max-age 10s --confirmed | feed-the-till
                  btcctl watch --above 70k --exec 'notify-send "Bitcoin $BTCCTL_PRICE"'

                On a terminal, the price is redrawn in place. On a pipe, each tick is one line; while ten lines of a currency \
                are unread, only its newest price waits. The watch survives a restart of the daemon.

                A price that is not as --max-age, --confirmed or --max-uncertainty require is not printed; standard error says when \
                that begins and when it is over.

                With --exec, watch prints nothing and runs the command with sh at each change of the price or of its freshness. \
                With --above, --below or --change, it runs the command for each condition that begins to hold. An unconfirmed price \
                counts only with --unconfirmed. The environment of the command has BTCCTL_VALUE, BTCCTL_PREVIOUS_VALUE, \
                BTCCTL_DIRECTION and others, see btcctl(1). Only one command runs at a time: conditions that \
                begin meanwhile have theirs after it, up to 32; of other changes, only the newest.

                Exit status: 64 for a wrong command line, 69 if the daemon can't be reached at the start, 74 if standard output \
                can't be written. With --bar, it waits for the daemon and shows the error meanwhile.
                """,
            options: Option.daemon + [codes, live, countOption] + Option.forms + [.bar, .color, exec]
                + Option.conditions + [.maxAge])
    ) { line throws(UsageError) in
        var watch = try Watch(line)
        return watch.run()
    }

    private static let codes = Option(
        "--currency", letter: "c", value: "codes",
        "The currencies, separated by commas. Default: $BTCCTL_CURRENCY, the daemon's first.",
        completion: .computed { words, beginning in
            let given = beginning.lastIndex(of: ",").map { beginning[...$0] } ?? ""
            return Completions.currencies(words).filter { given.start(of: $0) == nil }.map { given + $0 }
        })
    private static let live = Option(
        "--live", "Show each change of the price between the ticks, too, as the exchanges' streams bring it.")
    private static let countOption = Option("--count", letter: "n", value: "number", "End after this many prices.")
    private static let exec = Option(
        "--exec", value: "command", "Run this at each change, or when a condition begins to hold.")

    /// After this time without a message, watch subscribes again. If the tick interval is longer, that is normal.
    private static let longestSilence: Duration = .seconds(5)

    private static let shortestPause: Duration = .milliseconds(50)
    /// The time from the start to the check for open streams. By then, streams are open if the daemon uses any.
    private static let streamPatience: Duration = .seconds(5)
    /// The length of the history shown at the start, in seconds.
    private static let past: Int64 = 600

    private let daemon: DaemonAddress
    /// `nil` for the daemon's first one.
    private let currencies: [String]?
    private let updates: WatchUpdates
    private let output: PriceOutput
    private var sink: any WatchSink
    private let clock = ContinuousClock()
    /// By currency.
    private var lastShown: [String: StateMessage] = [:]
    /// The newest state of each currency that waits for a slow reader.
    private var held: [StateMessage] = []
    /// The socket that responded. Watch reconnects only to this one, because another daemon's prices may differ.
    private var reached: String?
    /// Why no state comes; `nil` while states come.
    private var lost: Complaint?
    private var backoff = Backoff(from: Self.shortestPause, to: .seconds(1))
    /// A descriptor that is readable after a signal.
    private var signals: Int32 = -1
    /// How many prices to print before the end; `nil` for no limit.
    private var left: Int?
    /// When to check whether a stream is open; `nil` if no check is needed.
    private var lookAt: ContinuousClock.Instant?

    private init(_ line: ParsedLine) throws(UsageError) {
        var output = try line.output()
        let command = line.text(Self.exec)
        let named = try line.value(Self.codes, codes(of:))
        let known = named ?? Connecting.currency(nil).map { [$0] }
        let condition = try line.condition(in: known?.first)
        if command == nil, condition.count > 0 || line.has(.unconfirmed) {
            throw UsageError(
                "--above, --below, --change and --unconfirmed say when to run --exec; to wait for them: btcctl wait"
            )
        }
        output.requirements = try line.requirements(command == nil ? .all : .usual)
        output.requirements.maxAge = try line.value(.maxAge, duration)
        if command?.allSatisfy(\.isWhitespace) == true { throw UsageError("--exec has no command") }
        if command != nil, output.form != .text {
            throw UsageError("with --exec nothing is printed: it excludes --json, --raw, --format and --bar")
        }
        if let named, named.count > 1, command != nil || output.bar != nil {
            throw UsageError("--exec and --bar take one currency")
        }
        left = try line.number(Self.countOption, in: 1...Int(Int32.max))
        if left != nil, command != nil { throw UsageError("--count counts printed prices, and --exec prints none") }
        let color = try line.color()
        daemon = try line.daemon()
        currencies = known
        updates = line.has(Self.live) ? .changes : .ticks
        self.output = output
        if updates == .changes, output.form == .text || output.form == .raw {
            lookAt = clock.now.advanced(by: Self.streamPatience)
        }
        let isTerminal = Screen.isPossible(environment: Output.environment)
        let isColored = color.isWanted(isTerminal: isTerminal, environment: Output.environment)
        if let command {
            sink = ExecSink(command, condition, output)
        } else if let bar = output.bar {
            sink = BarSink(bar, output)
        } else if isTerminal, output.form == .text {
            sink = TerminalSink(output, isColored: isColored, currencies: currencies ?? [])
        } else {
            sink = LineSink(output, isColored: isColored, currencies: currencies?.count ?? 1)
        }
    }

    /// Runs until it is stopped, or until no daemon can be reached at the start.
    private mutating func run() -> Int32 {
        signals = Signals.catchThem()
        if sink.isOnScreen { TerminalMode.take() }
        while true {
            do throws(Complaint) {
                try follow()
            } catch {
                endIfAsked()
                guard reached != nil || sink.waitsForDaemon else { return output.tell(error) }
                if error.word != lost?.word { sink.lost(error) }
                lost = error
            }
            Signals.wait(backoff.next(), on: signals)
            endIfAsked()
            takeContinued()
            sink.refresh()
        }
    }

    /// Shows states until the connection ends or is silent for too long, or until the process was stopped and continued. Then the
    /// caller subscribes again: states still in the socket are old, and a new watch begins with the newest.
    private mutating func follow() throws(Complaint) {
        let address = DaemonAddress(socket: reached ?? daemon.socket, timeout: daemon.timeout)
        try Connecting.withDaemon(address, patience: sink.patience) {
            connection throws(ClientError) in
            if reached == nil, sink.tellsOfSimulator, let note = try Self.noteOnSources(&connection) {
                sink.tell(note)
            }
            if reached == nil, sink.wantsPast { sink.begin(with: try past(&connection)) }
            try connection.watch(currencies, updates: updates)
            // A new watch begins with the newest states.
            held = []
            var heard: ContinuousClock.Instant?
            let begun = clock.now
            while true {
                let silence = (heard ?? begun).duration(to: clock.now)
                // The first state is available at once, so a bar waits less for it than for a tick.
                let patience = heard == nil ? daemon.timeout ?? sink.patience : Self.longestSilence
                let left = max(.milliseconds(1), patience - silence)
                do throws(ClientError) {
                    // A screen shows the age, which changes without a new state. A slow reader may have caught up.
                    let message = try connection.nextState(
                        timeout: sink.wantsSeconds || !held.isEmpty ? min(.seconds(1), left) : left,
                        newestOnly: sink.wantsNewestOnly && (currencies?.count ?? 1) == 1,
                        interruption: signals, outlet: sink.prints ? STDOUT_FILENO : -1)
                    reached = connection.path
                    heard = clock.now
                    endIfAsked()
                    if takeContinued() { return }
                    show(message)
                    showHeld()
                    lookForStreams(connection.path)
                } catch {
                    Signals.drain(signals)
                    endIfAsked()
                    if takeContinued() { return }
                    switch error {
                    case .interrupted,
                        .timedOut where left > .milliseconds(1):
                        sink.refresh()
                        showHeld()
                    // After the first response, watch connects to this path again.
                    case .timedOut where heard != nil, .closed where heard != nil:
                        sink.refresh()
                        return
                    default: throw error
                    }
                }
            }
        }
    }

    /// Shows a note once if no stream is open, because there are then no changes between the ticks.
    private mutating func lookForStreams(_ path: String) {
        guard let due = lookAt, clock.now >= due else { return }
        lookAt = nil
        do throws(ClientError) {
            var connection = try PriceConnection(path: path, timeout: .seconds(1))
            let sources = try connection.listSources(currencies?.first)
            if !sources.contains(where: { $0.way == .stream }) {
                sink.tell("No stream is open: this shows the ticks. 'btcctl sources -v' shows how each price arrives.")
            }
        } catch {
            // The note is optional, so ignore the error.
        }
    }

    /// The prices to show at the start, one per second; empty if the daemon keeps no history.
    private func past(_ connection: inout PriceConnection) throws(ClientError) -> [Candle] {
        let now = ObservationTime.now().wall
        let from = Timestamp(milliseconds: now.milliseconds - Self.past * 1000)
        var seen: [Candle] = []
        let query = HistoryQuery(currency: currencies?.first, from: from, to: now, step: .second, more: true)
        _ = try Connecting.optional { () throws(ClientError) in
            try connection.history(query) { candles, _, _ in seen += candles }
        }
        return seen
    }

    /// The note on sources that are not requested at the exchanges' own addresses; `nil` if there are none, or if the daemon's status
    /// can't be read.
    static func noteOnSources(_ connection: inout PriceConnection) throws(ClientError) -> String? {
        let status = try Connecting.optional { () throws(ClientError) in try connection.getStatus() }
        return status.flatMap { StatusText.elsewhere($0.elsewhere) }
    }

    /// Whether the process was stopped and continued. If so, the next state is shown even if it is the same.
    @discardableResult private mutating func takeContinued() -> Bool {
        guard Signals.takeContinued() else { return false }
        if sink.isOnScreen { TerminalMode.take() }
        lastShown = [:]
        sink.continued()
        return true
    }

    private mutating func show(_ message: StateMessage) {
        // A new watch begins with the current state, which may already be shown.
        backoff.reset()
        // The machine's time zone may have changed: localtime_r(3) reads it once.
        tzset()
        var shown = message
        shown.boottime = nil
        guard lost != nil || shown != lastShown[message.state.currency] else { return }
        held.removeAll { $0.state.currency == message.state.currency }
        guard !sink.isBehind else { return held.append(message) }
        lastShown[message.state.currency] = shown
        lost = nil
        guard sink.show(message), let count = left else { return }
        left = count - 1
        guard count == 1 else { return }
        sink.finish()
        exit(ExitStatus.success)
    }

    /// Shows the states that waited for a slow reader, if it has caught up.
    private mutating func showHeld() {
        guard !held.isEmpty, !sink.isBehind else { return }
        for message in held { show(message) }
    }

    private func endIfAsked() {
        Signals.endIfAsked { sink.finish() }
        if sink.prints { Output.endIfUnread() }
    }
}
