import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// What a command receives in its environment.
struct ExecEvent: Equatable {
    var message: StateMessage
    /// The condition that began to hold; `nil` for a change of any kind.
    var condition: PriceCondition.Kind?
}

/// Runs a command at each change, or when a condition begins to hold.
struct ExecSink: WatchSink {
    private let command: String
    private let model: PriceViewModel
    private let requirements: PriceRequirements
    private let condition: PriceCondition
    /// `nil` if the command runs at every change.
    private var alarm: Alarm?
    /// The newest change during a command, which runs again for it.
    private var missed: ExecEvent?
    private var child: pid_t = -1
    /// When the running command was started; `nil` once it was said that it takes long.
    private var startedAt: ContinuousClock.Instant?
    /// Whether it was said that the command can't be started.
    private var hasFailedToStart = false
    private var last: StateMessage?
    /// The last change, even if no command ran for it.
    private var lastChange: PriceState?
    /// The value passed to the last command; before the first command, the first value received.
    private var toldValue: Price?
    private var lastStatus: Int32 = 0

    /// The time after which a command is said to run on.
    private static let longCommand = Duration.seconds(10)

    var prints: Bool { false }
    var wantsSeconds: Bool { child > 0 || alarm != nil || requirements.maxAge != nil }

    init(_ command: String, _ condition: PriceCondition, _ output: PriceOutput) {
        self.command = command
        self.condition = condition
        model = output.model()
        requirements = output.requirements
        alarm = condition.count > 0 ? Alarm(condition, at: .now) : nil
        Signals.catchChildren()
    }

    @discardableResult mutating func show(_ message: StateMessage) -> Bool {
        take(message)
        return false
    }

    private mutating func take(_ message: StateMessage) {
        if let mistake = condition.mistake(in: message.state.currency) {
            Output.complain("btcctl: \(mistake)")
            exit(ExitStatus.usage)
        }
        // The command may have ended in the meantime.
        refresh()
        last = message
        var message = message
        if let refusal = requirements.refusal(of: message.state, at: .now()) {
            alarm?.lose(because: "the price \(refusal.predicate)", at: .now)
            // It is not passed on. But a command that displays the price must learn that the previous one is stale.
            guard alarm == nil, let told = lastChange, told.freshness == .fresh else { return }
            let isNewer = message.state.freshness == .fresh
            let reason = isNewer ? "the newer price \(refusal.predicate)" : message.state.failure
            message.state = told
            message.state.becomeStale(because: reason)
        }
        let state = message.state
        if alarm != nil {
            // Only a fresh price can meet a condition.
            guard state.freshness == .fresh, let value = state.quote?.value else {
                alarm?.lose(because: state.failure ?? "there is no price", at: .now)
                return
            }
            if toldValue == nil { model.show(state, at: .now()) }
            let note = alarm?.check(value, message)
            say(note)
            toldValue = toldValue ?? value
            lastChange = state
            return startNext()
        }
        if let last = lastChange, last.quote?.value == state.quote?.value, last.freshness == state.freshness { return }
        // Before the first price there is nothing to report.
        guard state.quote != nil else { return }
        lastChange = state
        missed = ExecEvent(message: message)
        startNext()
    }

    /// Starts what is due, unless a command runs.
    private mutating func startNext() {
        guard child <= 0 else { return }
        if let due = alarm?.next() {
            say(due.note)
            if !start(due.event) { alarm?.putBack(due.event) }
        } else if let event = missed.take(), !start(event) {
            missed = event
        }
    }

    private func say(_ note: String?) {
        if let note { Output.note("btcctl: \(note)") }
    }

    mutating func lost(_ complaint: Complaint) {
        Output.tell(complaint, json: false)
        alarm?.lose(because: complaint.message, at: .now)
        // A command that displays the price must not keep showing it as current.
        guard alarm == nil, var message = last, message.state.freshness == .fresh else { return }
        message.state.becomeStale(
            because: complaint.word == "unreachable" ? "btc-priced can't be reached" : complaint.message)
        show(message)
    }

    mutating func refresh() {
        // The price becomes older without a new state.
        if alarm == nil, let last, var told = lastChange, told.freshness == .fresh,
            let refusal = requirements.refusal(of: last.state, at: .now())
        {
            told.becomeStale(because: "the price \(refusal.predicate)")
            lastChange = told
            missed = ExecEvent(message: StateMessage(instance: last.instance, state: told))
        }
        let note = alarm?.note(at: .now)
        say(note)
        var status: Int32 = 0
        // A command that could not be started is tried again.
        guard child > 0 else { return startNext() }
        let ended = waitpid(child, &status, WNOHANG)
        // ECHILD: the exit status was collected elsewhere, so the command has ended.
        guard ended == child || (ended < 0 && errno == ECHILD) else {
            if let started = startedAt, started.duration(to: .now) >= Self.longCommand {
                startedAt = nil
                say(
                    "the command runs for more than \(Self.longCommand.components.seconds) s; the next one waits for its end"
                )
            }
            return
        }
        child = -1
        tell(ended: status)
        startNext()
    }

    /// - Returns: Whether the command was started.
    private mutating func start(_ event: ExecEvent) -> Bool {
        model.show(event.message.state, at: .now())
        do throws(CommandStart.Failure) {
            child = try CommandStart.shell(
                command,
                adding: event.message.state.variables(
                    model, previous: toldValue, model.direction, condition: event.condition?.rawValue, at: .now()))
            toldValue = event.message.state.quote?.value
            startedAt = .now
            hasFailedToStart = false
            return true
        } catch {
            if !hasFailedToStart { Output.complain("btcctl: the command can't be started: \(error.reason)") }
            hasFailedToStart = true
            return false
        }
    }

    /// Reports a failure only if the status changes: a command that always fails would fill a log.
    private mutating func tell(ended status: Int32) {
        defer { lastStatus = status }
        guard status != 0, status != lastStatus else { return }
        Output.complain("btcctl: the command ended \(CommandEnd(waitStatus: status).text)")
    }
}
