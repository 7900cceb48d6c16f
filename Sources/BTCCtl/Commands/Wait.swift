import BTCPriceClient
import BTCPriceCore
import BTCPriceVarlink
import Glibc
import Varlink

/// `btcctl wait`: until there is a fresh price, or one as it is wanted. A daemon that is not there is waited for, too: this is what other programs are
/// ordered behind.
struct Wait {
    private static let shortestPause: Duration = .milliseconds(50)
    private static let longestPause: Duration = .milliseconds(500)

    private let options: WaitOptions
    private let printer: PricePrinter
    private var conditions: ConditionWatch
    private let clock = ContinuousClock()
    private let deadline: ContinuousClock.Instant?
    /// Why there is no fresh price yet.
    private var reason = "no answer"
    private var hasToldOfDaemon = false
    private var signals: Int32 = -1

    /// Does it, and gives the exit status.
    // Not inlined: what it is made of is set up at run time, which `current` need not wait for.
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
        var pause = Self.shortestPause
        while true {
            do throws(Complaint) {
                if let (message, condition) = try firstWantedState() {
                    printer.show(message, at: .now(), condition: condition)
                    return options.condition.count > 1 ? condition.map(ExitStatus.holds) ?? 0 : ExitStatus.success
                }
                pause = Self.shortestPause
            } catch {
                guard error.status == ExitStatus.unreachable, error.word == "unreachable" else {
                    return options.output.tell(error)
                }
                reason = error.message
                tellOfDaemon()
            }
            if isOver {
                let what = options.condition.count == 0 ? "No fresh price" : "No fresh price as wanted"
                return options.output.tell(.timedOut(options.timeout ?? .zero, what: what, reason))
            }
            Signals.wait(min(pause, timeLeft), on: signals)
            Signals.endIfAsked()
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private var timeLeft: Duration { deadline.map { max(.zero, clock.now.duration(to: $0)) } ?? .seconds(3600) }

    private var isOver: Bool { timeLeft == .zero }

    /// The first fresh state at which a condition holds, if there are any; `nil` once the time is over or the daemon is lost.
    private mutating func firstWantedState() throws(Complaint) -> (StateMessage, PriceCondition.Kind?)? {
        // What lies ready is taken also without any time.
        let shortest: Duration = .milliseconds(100)
        return try Connecting.withDaemon(
            socket: options.socket, patience: min(.seconds(5), max(timeLeft, shortest))
        ) { connection throws(ClientError) in
            try connection.watch()
            var isHeard = false
            repeat {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        timeout: min(.seconds(5), max(timeLeft, shortest)), interruption: signals)
                    isHeard = true
                    if message.state.freshness == .fresh, let quote = message.state.quote,
                        !options.condition.trusts(message.state.confirmation)
                    {
                        reason = "it is \(quote.value), and not confirmed"
                    } else if message.state.freshness == .fresh, let quote = message.state.quote {
                        let condition = conditions.take(quote.value)
                        if condition != nil || options.condition.count == 0 { return (message, condition) }
                        reason = "it is \(quote.value)"
                    } else {
                        reason = message.state.failure ?? "no tick yet"
                    }
                } catch {
                    Signals.drain(signals)
                    Signals.endIfAsked()
                    switch error {
                    case .interrupted: continue
                    // After a silence a new watch shows whether the daemon still lives; where time is short, nothing is known.
                    // The time is over, and the daemon has said why it is not so yet.
                    case .timedOut where isHeard && isOver: return nil
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
        guard !hasToldOfDaemon, !options.output.isJSON else { return }
        hasToldOfDaemon = true
        Output.complain("btcctl: waiting: \(reason)")
    }
}
