import BTCPriceCore
import BTCPriceFeature
import BTCPriceAPI
import Glibc

/// Where `watch` shows states.
protocol WatchSink {
    /// Whether only the newest of several available states is wanted.
    var wantsNewestOnly: Bool { get }
    /// The time without a state after which ``refresh()`` is called; `nil` for never.
    var refreshPeriod: Duration? { get }
    /// Whether to wait for a daemon that is not running at the start.
    var waitsForDaemon: Bool { get }
    /// The timeout of the connection and of the first state.
    var patience: Duration { get }
    /// Whether it prints to standard output. If so, it ends when the reader is gone.
    var prints: Bool { get }
    /// Whether to note that sources are not requested at the exchanges' own addresses.
    var tellsOfSimulator: Bool { get }
    /// Shows a note before the first state.
    mutating func tell(_ note: String)
    /// Shows a state.
    mutating func show(_ message: StateMessage)
    /// The daemon is gone. Called once, until it is back.
    mutating func lost(_ complaint: Complaint)
    /// Called after ``refreshPeriod`` without a state, or after a signal.
    mutating func refresh()
    /// The process was stopped and continued: others may have written to the terminal.
    mutating func continued()
    /// Called before a signal ends the process.
    func finish()
}

extension WatchSink {
    var wantsNewestOnly: Bool { true }
    var refreshPeriod: Duration? { nil }
    var waitsForDaemon: Bool { false }
    var patience: Duration { .seconds(5) }
    var prints: Bool { true }
    var tellsOfSimulator: Bool { false }
    mutating func tell(_ note: String) { Output.complain(note) }
    /// The note shown while the daemon is gone.
    static var lostDaemon: String { "Reason: btc-priced can't be reached; waiting for it." }
    mutating func refresh() {}
    mutating func continued() {}
    func finish() {}
}

/// Prints one line per tick, for pipes.
struct LineSink: WatchSink {
    private let printer: PricePrinter
    private let isColored: Bool
    private var lastBanner: String?
    private var hasWarned = false
    private var wasUnconfirmed = false

    var wantsNewestOnly: Bool { false }
    var tellsOfSimulator: Bool { !printer.output.isJSON }

    init(_ output: PriceOutput, isColored: Bool) {
        printer = PricePrinter(output)
        self.isColored = isColored
    }

    mutating func show(_ message: StateMessage) {
        if let line = printer.line(message, at: .now()) { Output.line(isColored ? colored(line) : line) }
        guard !printer.output.isJSON else { return }
        let model = printer.model
        if let banner = model.banner, banner != lastBanner {
            for note in [banner, model.reason].compactMap(\.self) { Output.complain(note) }
        }
        lastBanner = model.banner
        if model.isUnconfirmed, !wasUnconfirmed { Output.complain(PriceTexts.unconfirmed) }
        wasUnconfirmed = model.isUnconfirmed
        // Once, not at every change of the number in it.
        if let warning = model.warning, !hasWarned { Output.complain(warning) }
        hasWarned = model.warning != nil
    }

    mutating func lost(_ complaint: Complaint) {
        lastBanner = nil
        Output.tell(complaint, json: printer.output.isJSON)
    }

    private func colored(_ line: String) -> String {
        let style: StyledLine.Style =
            switch printer.model.direction {
            case .up: .good
            case .down: .bad
            case .flat: .plain
            }
        guard printer.output.form == .text, printer.model.banner == nil else { return line }
        return StyledLine([.init(text: line, style: style)]).text(isColored: true)
    }
}

/// Prints a line for a status bar when it changes, from the start and on every failure.
struct BarSink: WatchSink {
    private let bar: Bar
    private let printer: PricePrinter
    private var last: StateMessage?
    private var lastLine: String?

    var waitsForDaemon: Bool { true }
    var patience: Duration { Bar.patience }

    init(_ bar: Bar, _ output: PriceOutput) {
        self.bar = bar
        printer = PricePrinter(output)
    }

    mutating func show(_ message: StateMessage) {
        last = message
        if let line = printer.line(message, at: .now()) { put(line) }
    }

    mutating func lost(_ complaint: Complaint) {
        guard let last, last.state.quote != nil else { return put(bar.line(.failed(complaint.message))) }
        printer.model.updatesFailed(Self.lostDaemon)
        put(bar.line(Bar.Content(last.state, printer.model)))
    }

    private mutating func put(_ line: String) {
        guard line != lastLine else { return }
        lastLine = line
        Output.line(line)
    }
}

/// Redraws lines in place on a terminal.
struct TerminalSink: WatchSink {
    private let model: PriceViewModel
    private let isColored: Bool
    private var view: WatchView
    private var screen = Screen()
    private var last: StateMessage?
    private var isLost = false
    private var note: String?

    /// The age is updated even without a new state.
    var refreshPeriod: Duration? { .seconds(1) }
    var tellsOfSimulator: Bool { true }

    init(_ output: PriceOutput, isColored: Bool) {
        model = PriceViewModel(timestampFormatter: output.timestamps)
        self.isColored = isColored
        view = WatchView(isUnicode: WatchView.isUnicode(environment: Connecting.environment))
    }

    mutating func show(_ message: StateMessage) {
        // After SIGCONT the same state comes again.
        if message != last { view.see(message.state) }
        last = message
        isLost = false
        refresh()
    }

    mutating func tell(_ note: String) { self.note = note }

    mutating func lost(_ complaint: Complaint) {
        isLost = true
        refresh()
    }

    mutating func refresh() {
        guard let last else { return }
        let now = ObservationTime.now()
        model.show(last.state, at: now)
        if isLost { model.updatesFailed(Self.lostDaemon) }
        let size = Screen.size
        var lines = view.lines(last.state, model, at: now, width: size.width)
        if let note {
            let words = WatchView.wrapped(note.split(separator: " ").map(String.init), width: size.width)
            // The price comes first if there is no room for both.
            if words.count + lines.count <= size.height {
                lines.insert(contentsOf: words.map { StyledLine($0) }, at: 0)
            }
        }
        Output.write(screen.draw(lines, in: size, isColored: isColored), to: STDOUT_FILENO)
    }

    mutating func continued() {
        screen = Screen()
    }

    /// Moves to a new line for the shell.
    func finish() {
        Output.write("\n", to: STDOUT_FILENO)
    }
}
