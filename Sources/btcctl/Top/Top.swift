import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl top`: the price, its chart and its markets on one screen, with keys.
struct Top {
    static let verb = Verb(
        command: Command(
            "top", "Show the price, its chart and its markets on one screen.",
            details: """
                Examples:
                  btcctl top
                  btcctl top -c EUR --span 7d --candles

                The footer names the keys, and ? explains them. A key that can't be used says why. The mouse is left to the \
                terminal. For a screen reader, 'btcctl watch | cat' prints a line at each tick.

                At the end, a summary of the prices that were seen is printed on standard error.

                Exit status: 0 after the key q, 64 for a wrong command line or without a terminal, 74 if standard output can't be \
                written. It waits for a daemon that can't be reached.
                """,
            options: Option.daemon + [
                .currency, ChartView.spanOption, ChartView.candlesFlag, sats, .symbols, .ascii, .color, noSync, .utc,
            ])
    ) { line throws(UsageError) in
        var top = try Top(line)
        return top.run()
    }

    private static let sats = Option("--sats", "Show the satoshis that one unit of the currency buys.")
    private static let noSync = Option(
        "--no-sync", "Don't use synchronized output, also where the terminal claims to have it.")
    /// The mode of synchronized output, and the question whether the terminal has it (DECRQM).
    private static let synchronized = 2026
    private static let question = "\u{1B}[?2026$p"
    private static let longestSilence: Duration = .seconds(5)
    /// The time between two requests of the events, and the time that they are of, in seconds.
    private static let (eventsEvery, lately): (Int64, Int64) = (10, 6 * 3600)

    private let daemon: DaemonAddress
    private let isColored: Bool
    private let mayBeSynchronized: Bool
    private var state: TopState
    private var content: TopContent
    private var view: TopView
    private var screen = Screen(.whole)
    private var keys = KeyReader()
    /// Whether the terminal draws what is between two marks at once.
    private var isSynchronized = false
    /// How many rows of the markets have no room.
    private var hidden = 0
    private var summary = WatchSummary()
    /// The newest state, also while the picture is frozen.
    private var newest: StateMessage?
    /// The socket that responded. Another daemon's prices may differ.
    private var reached: String?
    private var backoff = Backoff(from: .milliseconds(50), to: .seconds(1))
    /// The second in which the sources were requested last, Unix seconds.
    private var second: Int64?
    /// When the history may be requested again after it was refused, Unix seconds.
    private var nextHistory: Int64 = 0
    /// When the events were requested last, Unix seconds.
    private var eventsSecond: Int64 = 0
    /// Whether a state came since the start.
    private var hasShown = false
    private var isOver = false
    /// A descriptor that is readable after a signal and after a key.
    private var signals: Int32 = -1

    private init(_ line: ParsedLine) throws(UsageError) {
        guard Screen.isPossible(environment: Output.environment), isatty(STDIN_FILENO) == 1 else {
            throw UsageError("top needs a terminal that it can draw on; 'btcctl watch' prints lines anywhere")
        }
        daemon = try line.daemon()
        let span = try line.value(ChartView.spanOption, ChartView.span(of:)) ?? .day
        state = TopState(span: span, currency: Connecting.currency(try line.currency()))
        state.isCandles = line.has(ChartView.candlesFlag)
        state.isInSatoshis = line.has(.sats)
        isColored = try line.color().isWanted(isTerminal: true, environment: Output.environment)
        mayBeSynchronized = !line.has(Self.noSync)
        var timestamps = line.timestamps
        timestamps.hasSeconds = true
        view = TopView(symbols: try line.symbols(), timestamps: timestamps)
        content = TopContent(
            model: PriceViewModel(timestampFormatter: timestamps),
            history: ChartCandles(named: state.currency, span: span), now: .now())
        makeModel()
    }

    /// Runs until it is stopped.
    private mutating func run() -> Int32 {
        signals = Signals.catchThem()
        TerminalMode.take(.whole)
        while !isOver {
            do throws(Complaint) {
                try follow()
            } catch {
                // A wrong currency, for example. What was right once may become it again.
                guard hasShown || error.word == "unreachable" else {
                    TerminalMode.release()
                    Output.tell(error, json: false)
                    return error.status
                }
                content.lost = error.reason
                if !state.isFrozen { content.state?.becomeStale(because: error.message) }
                draw()
            }
            guard !isOver else { break }
            Signals.wait(backoff.next(), on: signals)
            attend()
            draw()
        }
        finish()
        return ExitStatus.success
    }

    /// Shows states until another currency is wanted, the connection ends, or the process was stopped and continued.
    private mutating func follow() throws(Complaint) {
        let address = DaemonAddress(socket: reached ?? daemon.socket, timeout: daemon.timeout)
        try Connecting.withDaemon(address) { connection throws(ClientError) in
            state.currencies =
                try Connecting.optional { () throws(ClientError) in try connection.listCurrencies().map(\.currency) }
                ?? []
            content.note = try Watch.noteOnSources(&connection)
            nextHistory = 0
            var details = try PriceConnection(path: connection.path, timeout: daemon.timeout ?? .seconds(5))
            let currency = state.currency
            try connection.watch(currency.map { [$0] })
            reached = connection.path
            var heard: ContinuousClock.Instant?
            let begun = ContinuousClock.now
            while true {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        timeout: .seconds(1), newestOnly: true, interruption: signals, outlet: STDOUT_FILENO)
                    heard = .now
                    backoff.reset()
                    take(message)
                } catch {
                    Signals.drain(signals)
                    switch error {
                    case .interrupted: break
                    case .timedOut where (heard ?? begun).duration(to: .now) < Self.longestSilence: break
                    // The ticks may be farther apart. A lost daemon does not accept the next connection.
                    case .timedOut where heard != nil, .closed where heard != nil: return
                    default: throw error
                    }
                }
                guard attend(), state.currency == currency else { return }
                // The first picture comes before what takes longer.
                if second == nil { draw() }
                try request(&details)
                draw()
            }
        }
    }

    /// Requests the sources once a second, and the candles when a minute has begun.
    private mutating func request(_ details: inout PriceConnection) throws(ClientError) {
        let now = ObservationTime.now().wall.wholeSeconds
        guard !state.isFrozen else { return }
        if second != now {
            second = now
            content.sources =
                try Connecting.optional { () throws(ClientError) in try details.listSources(state.currency) } ?? []
        }
        // What is refused may be the disk's error of a moment, or there is no history.
        guard now >= nextHistory else { return }
        let isKnown =
            try Connecting.optional { () throws(ClientError) in try content.history.update(&details, now: now) } != nil
        content.historyIsRefused = !isKnown
        if !isKnown { nextHistory = now + 60 }
        // A daemon of version 1.0.0 has none.
        if isKnown, now - eventsSecond >= Self.eventsEvery {
            eventsSecond = now
            let from = Timestamp(milliseconds: (now - Self.lately) * 1000)
            content.events =
                try Connecting.optional { () throws(ClientError) in
                    try details.events(EventQuery(currency: content.state?.currency, from: from), most: 100)
                } ?? []
        }
    }

    private mutating func take(_ message: StateMessage) {
        newest = message
        // Not before: the reply must find a reader.
        if !hasShown, mayBeSynchronized { Output.write(Self.question, to: STDOUT_FILENO) }
        hasShown = true
        summary.see(message.state)
        // The machine's time zone may have changed: localtime_r(3) reads it once.
        tzset()
        guard !state.isFrozen else { return }
        content.lost = nil
        content.state = message.state
    }

    /// Restores the terminal, and prints the summary on it.
    private func finish() {
        TerminalMode.release()
        summary.tell()
    }

    /// Does what signals and keys ask for.
    /// - Returns: Whether to go on with this connection.
    @discardableResult
    private mutating func attend() -> Bool {
        Signals.endIfAsked { finish() }
        Output.endIfUnread()
        if Signals.takeContinued() {
            TerminalMode.take(.whole)
            screen.forget()
            return false
        }
        // The terminal may have cut or wrapped what was there.
        if Signals.takeResized() { screen.forget() }
        let bytes = TerminalMode.takeInput()
        var pressed = keys.keys(in: bytes)
        if bytes.isEmpty, let escape = keys.escapeIfAlone() { pressed.append(escape) }
        for key in pressed { press(key) }
        return !isOver
    }

    private mutating func press(_ key: Key) {
        if case .mode(Self.synchronized, let known) = key { isSynchronized = known == 1 || known == 2 }
        let (wasFrozen, wasInSatoshis) = (state.isFrozen, state.isInSatoshis)
        switch state.press(key, hidden: hidden) {
        case .none: break
        case .quit: isOver = true
        case .redraw: screen.forget()
        case .span: content.history = ChartCandles(named: state.currency, span: state.span)
        case .currency:
            content.history = ChartCandles(named: state.currency, span: state.span)
            (content.state, content.sources, content.events, newest, second) = (nil, [], [], nil, nil)
            eventsSecond = 0
            makeModel()
        }
        if state.isInSatoshis != wasInSatoshis { makeModel() }
        if wasFrozen, !state.isFrozen { content.state = newest?.state ?? content.state }
    }

    /// A new model has no direction yet.
    private mutating func makeModel() {
        content.model = PriceOutput(timestamps: view.timestamps, isInSatoshis: state.isInSatoshis).model()
    }

    private mutating func draw() {
        if !state.isFrozen { content.now = .now() }
        if let shown = content.state {
            content.model.show(shown, at: content.now)
        } else if let lost = content.lost {
            content.model.updatesFailed(lost)
        }
        let size = Screen.size
        let picture = view.picture(content, state, in: size)
        hidden = picture.hidden
        let text = screen.draw(picture.lines, in: size, isColored: isColored)
        guard !text.isEmpty else { return }
        Output.write(isSynchronized ? "\u{1B}[?2026h\(text)\u{1B}[?2026l" : text, to: STDOUT_FILENO)
    }
}
