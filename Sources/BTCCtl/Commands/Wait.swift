import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Glibc
import Varlink

/// `btcctl wait`: waits for a fresh price, or for one that meets a condition. If the daemon is not running, it waits for the daemon
/// too, so that other programs can be ordered after it.
struct Wait {
    private static let shortestPause: Duration = .milliseconds(50)
    private static let longestPause: Duration = .milliseconds(500)

    private let options: WaitOptions
    private let printer: PricePrinter
    private var conditions: ConditionWatch
    private let clock = ContinuousClock()
    private let deadline: ContinuousClock.Instant?
    /// Why there is no matching price yet.
    private var reason = "no answer"
    private var hasToldOfDaemon = false
    private var signals: Int32 = -1

    /// Runs the command and returns the exit status.
    // Not inlined, so that `current` does not pay for the run-time setup of these types.
    @inline(never)
    static func run(_ options: WaitOptions) -> Int32 {
        var wait = Wait(options)
        return wait.run()
    }

    private init(_ options: WaitOptions) {
        self.options = options
        printer = PricePrinter(options.output)
        conditions = ConditionWatch(options.condition)
        deadline = options.timeout.map(ContinuousClock().now.advanced)
    }

    private mutating func run() -> Int32 {
        signals = Signals.catchThem()
        var backoff = Backoff(from: Self.shortestPause, to: Self.longestPause)
        while true {
            do throws(Complaint) {
                if let (message, condition) = try firstWantedState() {
                    printer.show(message, at: .now(), condition: condition)
                    return options.condition.count > 1 ? condition.map(ExitStatus.holds) ?? 0 : ExitStatus.success
                }
                backoff.reset()
            } catch {
                guard error.status == ExitStatus.unreachable, error.word == "unreachable" else {
                    return options.output.tell(error)
                }
                reason = error.message
                tellOfDaemon()
            }
            if isOver {
                let what = options.condition.count == 0 ? "No fresh price" : "No fresh price that meets a condition"
                return options.output.tell(.timedOut(options.timeout ?? .zero, what: what, reason))
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
        return try Connecting.withDaemon(
            socket: options.socket, patience: min(.seconds(5), max(timeLeft, shortest))
        ) { connection throws(ClientError) in
            try connection.watch(Connecting.currency(options.currency).map { [$0] })
            var isHeard = false
            repeat {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        // Ticks may be ten seconds apart; the first state is available at once.
                        timeout: min(isHeard ? .seconds(15) : .seconds(5), max(timeLeft, shortest)),
                        interruption: signals)
                    isHeard = true
                    if message.state.freshness == .fresh, let quote = message.state.quote,
                        !options.condition.trusts(message.state.confirmation)
                    {
                        reason = "it is \(Self.text(quote)), and not confirmed"
                        if message.state.confirmation == .unconfirmed, let warning = message.state.warning {
                            reason += ": \(warning)"
                        }
                    } else if message.state.freshness == .fresh, let quote = message.state.quote {
                        let condition = conditions.take(quote.value)
                        if condition != nil || options.condition.count == 0 { return (message, condition) }
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
        guard !options.output.isJSON else { return }
        if !hasToldOfDaemon { Output.complain("btcctl: waiting: \(reason)") }
        hasToldOfDaemon = true
        // The full reason was printed before, so the timeout error needs only a summary.
        reason = "btc-priced has not responded"
    }

    private static func text(_ quote: PriceQuote) -> String {
        MoneyFormatter().string(from: quote.value, currency: quote.currency)
    }
}
