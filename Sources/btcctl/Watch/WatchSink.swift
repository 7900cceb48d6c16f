import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Glibc

/// Where `watch` shows states.
protocol WatchSink {
    /// Whether only the newest of several available states is wanted.
    var wantsNewestOnly: Bool { get }
    /// Whether to wait for a daemon that is not running at the start.
    var waitsForDaemon: Bool { get }
    /// The timeout of the connection and of the first state.
    var patience: Duration { get }
    /// Whether the sink prints to standard output. If so, the watch ends when the reader is gone.
    var prints: Bool { get }
    /// Whether to note that sources are not requested at the exchanges' own addresses.
    var tellsOfSimulator: Bool { get }
    /// Whether it redraws a screen.
    var isOnScreen: Bool { get }
    /// Whether so much of what it printed is unread that the newest state is to wait.
    var isBehind: Bool { get }
    /// Whether it shows the prices of the last minutes.
    var wantsPast: Bool { get }
    /// Takes in the prices of the last minutes, before the first state.
    mutating func begin(with candles: [Candle])
    mutating func tell(_ note: String)
    /// - Returns: Whether it showed a price.
    mutating func show(_ message: StateMessage) -> Bool
    /// The daemon is gone, or the watch has ended for another reason. Called once for each kind of reason, until a state comes.
    mutating func lost(_ complaint: Complaint)
    /// Whether ``refresh()`` is wanted after each second without a new state.
    var wantsSeconds: Bool { get }
    /// Called after a signal, after a wait for the daemon, and if wanted after each second without a new state.
    mutating func refresh()
    /// The process was stopped and continued: others may have written to the terminal.
    mutating func continued()
    /// Called before a signal ends the process.
    func finish()
}

extension WatchSink {
    var wantsNewestOnly: Bool { true }
    var waitsForDaemon: Bool { false }
    var patience: Duration { .seconds(5) }
    var prints: Bool { true }
    var tellsOfSimulator: Bool { false }
    var isOnScreen: Bool { false }
    var isBehind: Bool { false }
    var wantsSeconds: Bool { isOnScreen }
    var wantsPast: Bool { false }
    mutating func begin(with candles: [Candle]) {}
    mutating func tell(_ note: String) { Output.note(note) }
    mutating func refresh() {}
    mutating func continued() {}
    func finish() {}
}

/// The currencies whose price is not printed because it is not as required.
private struct RefusedPrices {
    private var currencies: Set<String> = []

    /// Why a price is not printed; `nil` if it is. Says when that begins and when it is over.
    mutating func refusal(of state: PriceState, _ output: PriceOutput, at now: ObservationTime) -> Complaint? {
        guard let refusal = output.requirements.refusal(of: state, at: now) else {
            if state.quote != nil, currencies.remove(state.currency) != nil, !output.isJSON {
                Output.note("The price in \(state.currency) is printed again.")
            }
            return nil
        }
        let complaint = Complaint(refusal, state)
        if currencies.insert(state.currency).inserted, output.isJSON || !Output.isQuiet {
            Output.tell(complaint, json: output.isJSON)
        }
        return complaint
    }
}

/// Prints one line per tick and currency, for pipes.
struct LineSink: WatchSink {
    /// What was printed last for one currency.
    private struct Printed {
        let printer: PricePrinter
        var lastBanner: String?
        var hasWarned = false
        var wasUnconfirmed = false
    }

    private let output: PriceOutput
    private let isColored: Bool
    /// Whether a bare number needs its currency.
    private let namesCurrency: Bool
    private var printed: [String: Printed] = [:]
    private var refused = RefusedPrices()
    private var lines: PrintedLines

    var wantsNewestOnly: Bool { false }
    var tellsOfSimulator: Bool { !output.isJSON }
    var isBehind: Bool { lines.isReaderBehind }

    /// - Parameter currencies: How many are watched. If there are several, a bare number needs its currency.
    init(_ output: PriceOutput, isColored: Bool, currencies: Int) {
        var output = output
        // Lines of one minute differ.
        if output.form == .text { output.timestamps.hasSeconds = true }
        self.output = output
        self.isColored = isColored
        namesCurrency = currencies > 1 && output.form == .raw
        lines = PrintedLines(currencies: currencies)
    }

    mutating func show(_ message: StateMessage) -> Bool {
        let now = ObservationTime.now()
        guard refused.refusal(of: message.state, output, at: now) == nil else { return false }
        let currency = message.state.currency
        var before = printed[currency] ?? Printed(printer: PricePrinter(output))
        defer { printed[currency] = before }
        let (printer, model) = (before.printer, before.printer.model)
        let line = printer.line(message, at: now)
        // The notes come before the first line that they concern.
        if !output.isJSON { tellNotes(on: model, &before) }
        guard let line else { return false }
        lines.put((namesCurrency ? "\(currency) " : "") + (isColored ? colored(line, model) : line))
        return message.state.quote != nil
    }

    private func tellNotes(on model: PriceViewModel, _ before: inout Printed) {
        if let banner = model.banner, banner != before.lastBanner {
            for note in [banner, model.reason].compactMap(\.self) { Output.note(note) }
        }
        if model.banner == nil, before.lastBanner != nil { Output.note(PriceTexts.currentAgain) }
        before.lastBanner = model.banner
        // Print the warning once, not whenever the number in it changes.
        let isNew = model.isUnconfirmed && !before.wasUnconfirmed || model.warning != nil && !before.hasWarned
        if let doubt = model.doubt, isNew { Output.note(doubt) }
        if model.doubt == nil, model.banner == nil, before.wasUnconfirmed || before.hasWarned {
            Output.note(PriceTexts.noLongerInDoubt)
        }
        before.wasUnconfirmed = model.isUnconfirmed
        before.hasWarned = model.warning != nil
    }

    mutating func lost(_ complaint: Complaint) {
        // It was not current, and the next banner is told, whatever it says.
        for currency in printed.keys { printed[currency]?.lastBanner = "" }
        Output.tell(complaint, json: output.isJSON)
    }

    private func colored(_ line: String, _ model: PriceViewModel) -> String {
        let style: StyledLine.Style =
            switch model.direction {
            case .up: .good
            case .down: .bad
            case .flat: .plain
            }
        guard output.form == .text, model.banner == nil else { return line }
        return StyledLine([.init(text: line, style: style)]).text(isColored: true)
    }
}

/// Prints a line for a status bar when it changes, from the start and on every failure.
struct BarSink: WatchSink {
    private let bar: Bar
    private let printer: PricePrinter
    private var last: StateMessage?
    private var lastLine: String?
    private var refused = RefusedPrices()
    private var lines = PrintedLines(currencies: 1)

    var waitsForDaemon: Bool { true }
    var isBehind: Bool { lines.isReaderBehind }
    var patience: Duration { Bar.patience }
    var wantsSeconds: Bool { printer.output.requirements.maxAge != nil }

    init(_ bar: Bar, _ output: PriceOutput) {
        self.bar = bar
        printer = PricePrinter(output)
    }

    mutating func show(_ message: StateMessage) -> Bool {
        let now = ObservationTime.now()
        last = message
        // A bar keeps the last line that it got, so it gets one without a price.
        if let complaint = refused.refusal(of: message.state, printer.output, at: now) {
            put(bar.line(.failed(complaint.message)))
            return false
        }
        guard let line = printer.line(message, at: now) else { return false }
        put(line)
        return message.state.quote != nil
    }

    mutating func lost(_ complaint: Complaint) {
        // Whether the last price is still as required is not known.
        guard let last, last.state.quote != nil, printer.output.requirements == PriceRequirements() else {
            return put(bar.line(.failed(complaint.message)))
        }
        printer.model.updatesFailed(complaint.reason)
        put(bar.line(Bar.Content(last.state, printer.model)))
    }

    /// The price becomes older without a new state.
    mutating func refresh() {
        guard let last, printer.output.requirements.maxAge != nil else { return }
        if let complaint = refused.refusal(of: last.state, printer.output, at: .now()) {
            put(bar.line(.failed(complaint.message)))
        }
    }

    private mutating func put(_ line: String) {
        guard line != lastLine else { return }
        lastLine = line
        lines.put(line)
    }
}

/// Redraws lines in place on a terminal.
struct TerminalSink: WatchSink {
    private let model: PriceViewModel
    private let isColored: Bool
    private let output: PriceOutput
    /// If there are several, a table is shown.
    private let currencies: [String]
    private var view: WatchView
    private var screen = Screen()
    private var summary = WatchSummary()
    private var last: StateMessage?
    /// The last state of each currency, if there are several.
    private var states: [String: StateMessage] = [:]
    /// Why no newer price comes; `nil` while the daemon responds.
    private var lost: String?
    private var notes: [String] = []

    var tellsOfSimulator: Bool { true }
    var isOnScreen: Bool { true }

    init(_ output: PriceOutput, isColored: Bool, currencies: [String] = []) {
        model = output.model()
        self.output = output
        self.currencies = currencies
        self.isColored = isColored
        view = WatchView(isUnicode: Output.isUnicode)
    }

    mutating func show(_ message: StateMessage) -> Bool {
        // After SIGCONT the same state comes again.
        if message != last {
            view.see(message.state)
            summary.see(message.state)
        }
        last = message
        states[message.state.currency] = message
        lost = nil
        refresh()
        return message.state.quote != nil && output.requirements.refusal(of: message.state, at: .now()) == nil
    }

    mutating func tell(_ note: String) {
        notes.append(note)
        refresh()
    }

    /// False for a table, which has no sparkline.
    var wantsPast: Bool { currencies.count <= 1 }

    mutating func begin(with candles: [Candle]) { view.see(candles) }

    mutating func lost(_ complaint: Complaint) {
        lost = complaint.reason
        refresh()
    }

    mutating func refresh() {
        guard let last else { return }
        let now = ObservationTime.now()
        model.show(last.state, at: now)
        if let lost { model.updatesFailed(lost) }
        let size = Screen.size
        let refusal = output.requirements.refusal(of: last.state, at: now).map { Complaint($0, last.state) }
        var lines =
            currencies.count > 1
            ? table(at: now)
            : refusal.map { [StyledLine(PriceTexts.placeholder), StyledLine($0.message)] }
                ?? view.lines(last.state, model, at: now, width: size.width)
        let words = notes.flatMap { Table.wrapped($0.split(separator: " ").map(String.init), width: size.width) }
        // The price comes first if there is no room for both.
        if words.count + lines.count <= size.height { lines.insert(contentsOf: words.map { StyledLine($0) }, at: 0) }
        Output.write(screen.draw(lines, in: size, isColored: isColored), to: STDOUT_FILENO)
    }

    /// A row for each currency, and below the rows the notes on prices, such as why one is not current.
    private func table(at now: ObservationTime) -> [StyledLine] {
        var notes: [String] = []
        let rows = currencies.compactMap { currency -> [String]? in
            guard let state = states[currency]?.state else { return nil }
            let model = output.model()
            model.show(state, at: now)
            if let refusal = output.requirements.refusal(of: state, at: now) {
                notes.append(Complaint(refusal, state).message)
                return [currency] + Array(repeating: PriceTexts.placeholder, count: 4)
            }
            if let lost { model.updatesFailed(lost) }
            notes += (model.notes + [model.reason].compactMap(\.self)).map { "\(currency): \($0)" }
            let age = state.age(at: now).map { "\(Table.text($0.age)) old" } ?? PriceTexts.placeholder
            return [currency, model.price, model.timestamp, state.quote?.sourceText ?? "", age]
        }
        return (Table.lines(rows) + notes).map { StyledLine($0) }
    }

    mutating func continued() { screen.forget() }

    /// Moves to a new line for the shell, and prints the summary.
    func finish() {
        Output.write("\n", to: STDOUT_FILENO)
        summary.tell()
    }
}
