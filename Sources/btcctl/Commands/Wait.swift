import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl wait`: waits for a fresh price or a condition, and for the daemon, so that other programs can be ordered after it.
struct Wait {
    static let verb = Verb(
        command: Command(
            "wait", "Wait for a fresh price, or for one that meets a condition, and print it.",
            details: """
                Examples:
                  btcctl wait --timeout 30s && start-the-shop
                  btcctl wait --above 70k
                  btcctl wait --change 2% --format 'moved to {price}'

                If the daemon is not running, wait for it too. --change is measured from the first fresh price. An unconfirmed \
                price counts only with --unconfirmed.

                Exit status: 0 with a fresh price, or if the only condition holds; with several conditions, 10 if --above holds, \
                11 if --below holds, 12 if --change holds; 64 for a wrong command line, 69 if the daemon's response is not \
                understood, 74 if standard output can't be written, 75 if the price did not come within --timeout.
                """, options: [.socket, .quiet, .currency] + Option.conditions + [timeLimit] + Option.forms)
    ) { line throws(UsageError) in
        var wait = try Wait(line)
        return wait.run()
    }

    private static let timeLimit = Option(
        "--timeout", value: "duration", "Give up after this time: 30s, 5m. Default: never.")
    private static let shortestPause: Duration = .milliseconds(50)
    private static let longestPause: Duration = .milliseconds(500)

    private var daemon: DaemonAddress
    private let currency: String?
    /// `nil` for no limit.
    private let timeout: Duration?
    /// If it is empty, any fresh price is enough.
    private let condition: PriceCondition
    private let requirements: PriceRequirements
    private let output: PriceOutput
    private let printer: PricePrinter
    private var conditions: ConditionWatch
    private let clock = ContinuousClock()
    private let deadline: ContinuousClock.Instant?
    /// Why there is no matching price yet.
    private var reason = "no answer"
    private var hasToldOfDaemon = false
    /// Why no price can meet the condition.
    private var wrong: Complaint?
    private var signals: Int32 = -1

    private init(_ line: ParsedLine) throws(UsageError) {
        // Its --timeout is that of the wait.
        daemon = DaemonAddress(socket: line.text(.socket))
        currency = try line.currency()
        condition = try line.condition(in: Connecting.currency(currency))
        requirements = try line.requirements(.usual)
        timeout = try line.value(Self.timeLimit, duration)
        output = try line.output()
        printer = PricePrinter(output)
        conditions = ConditionWatch(condition)
        deadline = timeout.map(ContinuousClock().now.advanced)
    }

    private mutating func run() -> Int32 {
        signals = Signals.catchThem()
        var backoff = Backoff(from: Self.shortestPause, to: Self.longestPause)
        while true {
            do throws(Complaint) {
                if let (message, holds) = try firstWantedState() {
                    printer.show(message, at: .now(), condition: holds)
                    return condition.count > 1 ? holds.map(ExitStatus.holds) ?? 0 : ExitStatus.success
                }
                if let wrong { return output.tell(wrong) }
                backoff.reset()
            } catch {
                guard error.status == ExitStatus.unreachable, error.word == "unreachable" else {
                    return output.tell(error)
                }
                reason = error.message
                tellOfDaemon()
            }
            if isOver {
                let what = condition.count == 0 ? "No fresh price" : "No fresh price that meets a condition"
                return output.tell(.timedOut(timeout ?? .zero, what: what, reason))
            }
            Signals.wait(min(backoff.next(), timeLeft), on: signals)
            Signals.endIfAsked()
        }
    }

    private var timeLeft: Duration { deadline.map { max(.zero, clock.now.duration(to: $0)) } ?? .seconds(3600) }

    private var isOver: Bool { timeLeft == .zero }

    /// The first fresh state, or the first one that meets a condition if any are set; `nil` after the timeout or if the daemon is silent.
    private mutating func firstWantedState() throws(Complaint) -> (StateMessage, PriceCondition.Kind?)? {
        // Even with no time left, a state that is already available is read.
        let shortest: Duration = .milliseconds(100)
        var daemon = daemon
        defer { self.daemon = daemon }
        return try Connecting.withSameDaemon(
            &daemon, patience: min(.seconds(5), max(timeLeft, shortest))
        ) { connection throws(ClientError) in
            try connection.watch(Connecting.currency(currency).map { [$0] })
            var isHeard = false
            repeat {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        // Ticks may be ten seconds apart; the first state is available at once.
                        timeout: min(isHeard ? .seconds(15) : .seconds(5), max(timeLeft, shortest)),
                        interruption: signals)
                    isHeard = true
                    if let mistake = condition.mistake(in: message.state.currency) {
                        wrong = Complaint(word: "usage", message: mistake, status: ExitStatus.usage)
                        return nil
                    }
                    if message.state.freshness == .fresh, let quote = message.state.quote,
                        let refusal = requirements.refusal(of: message.state, at: .now())
                    {
                        reason = "it is \(Self.text(quote)), and \(refusal.predicate)"
                        if refusal == .unconfirmed, let warning = message.state.standing.warning {
                            reason += ": \(warning)"
                        }
                    } else if message.state.freshness == .fresh, let quote = message.state.quote {
                        let holds = conditions.take(quote.value, in: quote.currency).first
                        if holds != nil || condition.count == 0 { return (message, holds) }
                        reason = "it is \(Self.text(quote))"
                    } else {
                        reason = message.state.failure ?? "no tick yet"
                    }
                } catch {
                    Signals.drain(signals)
                    Signals.endIfAsked()
                    switch error {
                    case .interrupted: continue
                    // The ticks are paused or slow, and `reason` is from the last state. A new watch shows whether the daemon still runs.
                    case .timedOut where isHeard: return nil
                    case .timedOut:
                        reason = "\(error)"
                        tellOfDaemon()
                        return nil
                    default: throw error
                    }
                }
            } while !isOver
            return nil
        }
    }

    private mutating func tellOfDaemon() {
        guard !output.isJSON else { return }
        if !hasToldOfDaemon { Output.note("btcctl: waiting: \(reason)") }
        hasToldOfDaemon = true
        // The full reason was printed before, so the timeout error needs only a summary.
        reason = "btc-priced has not responded"
    }

    private static func text(_ quote: PriceQuote) -> String {
        MoneyFormatter().string(from: quote.value, currency: quote.currency)
    }
}
