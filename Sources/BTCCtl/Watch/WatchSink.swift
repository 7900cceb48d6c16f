import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import Glibc

/// Where `watch` shows what comes.
protocol WatchSink {
    /// Whether of several states that lie ready only the newest matters.
    var wantsNewestOnly: Bool { get }
    /// After how long without a state ``refresh()`` is wanted.
    var refreshPeriod: Duration? { get }
    /// Whether a daemon that is not there at the start is waited for.
    var waitsForDaemon: Bool { get }
    /// How long a daemon may take for the state that it has.
    var patience: Duration { get }
    /// Whether it prints: then it ends when nobody reads.
    var prints: Bool { get }
    /// Whether people read it, who must know that the prices are not the exchanges' own.
    var tellsOfSimulator: Bool { get }
    /// Tells people of something, before the first state.
    mutating func tell(_ note: String)
    /// A state.
    mutating func show(_ message: StateMessage)
    /// The daemon is gone. Said once, until it is back.
    mutating func lost(_ complaint: Complaint)
    /// Time has gone by, or a signal came.
    mutating func refresh()
    /// We were stopped and continued: others have written on the terminal meanwhile.
    mutating func continued()
    /// A signal ends us.
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
    /// Said while the daemon is gone.
    static var lostDaemon: String { "Reason: btc-priced can't be reached; waiting for it." }
    mutating func refresh() {}
    mutating func continued() {}
    func finish() {}
}

/// A line a tick, for pipes.
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
        // Once, not with every change of the figure in it.
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

/// What a status bar reads: a line where it changes, from the start on, whatever fails.
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

/// Lines that are redrawn in place on a terminal.
struct TerminalSink: WatchSink {
    private let model: PriceViewModel
    private let isColored: Bool
    private var view: WatchView
    private var screen = Screen()
    private var last: StateMessage?
    private var isLost = false
    private var note: String?

    /// The age goes on when nothing comes.
    var refreshPeriod: Duration? { .seconds(1) }
    var tellsOfSimulator: Bool { true }

    init(_ output: PriceOutput, isColored: Bool) {
        model = PriceViewModel(timestampFormatter: output.timestamps)
        self.isColored = isColored
        view = WatchView(isUnicode: WatchView.isUnicode(environment: Connecting.environment))
    }

    mutating func show(_ message: StateMessage) {
        // After a stop the same state comes again.
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

    /// The shell's next line is its own.
    func finish() {
        Output.write("\n", to: STDOUT_FILENO)
    }
}
