import BTCPriceClient
import BTCPriceCore
import BTCPriceVarlink
import Varlink
import Glibc

/// `btcctl wait`: until there is a fresh price. A daemon that is not there is waited for, too: this is what other programs are
/// ordered behind.
struct Wait {
    private static let shortestPause: Duration = .milliseconds(50)
    private static let longestPause: Duration = .milliseconds(500)

    private let options: WaitOptions
    private let clock = ContinuousClock()
    private let deadline: ContinuousClock.Instant?
    /// Why there is no fresh price yet.
    private var reason = "no answer"
    private var hasToldOfDaemon = false
    private var signals: Int32 = -1

    init(_ options: WaitOptions) {
        self.options = options
        deadline = options.timeout.map(ContinuousClock().now.advanced)
    }

    mutating func run() -> Int32 {
        signals = Signals.catchThem()
        var pause = Self.shortestPause
        while true {
            do throws(Complaint) {
                if let message = try firstFreshState() {
                    Current.show(message, json: options.json, at: .now())
                    return ExitStatus.success
                }
                pause = Self.shortestPause
            } catch {
                guard error.status == ExitStatus.unreachable, error.word == "unreachable" else {
                    Output.tell(error, json: options.json)
                    return error.status
                }
                reason = error.message
                tellOfDaemon()
            }
            if isOver {
                let complaint = Complaint.timedOut(options.timeout ?? .zero, reason)
                Output.tell(complaint, json: options.json)
                return complaint.status
            }
            Signals.wait(min(pause, timeLeft), on: signals)
            Signals.endIfAsked()
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private var timeLeft: Duration { deadline.map { max(.zero, clock.now.duration(to: $0)) } ?? .seconds(3600) }

    private var isOver: Bool { timeLeft == .zero }

    /// The first fresh state; `nil` once the time is over or the daemon is lost.
    private mutating func firstFreshState() throws(Complaint) -> StateMessage? {
        try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
            try connection.watch()
            while !isOver {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        timeout: min(.seconds(5), max(timeLeft, .milliseconds(1))), interruption: signals)
                    if message.state.freshness == .fresh { return message }
                    reason = message.state.failure ?? "no tick yet"
                } catch {
                    Signals.drain(signals)
                    Signals.endIfAsked()
                    switch error {
                    case .interrupted: continue
                    // After a silence a new watch shows whether the daemon still lives; where time is short, nothing is known.
                    case .timedOut: return nil
                    default: throw error
                    }
                }
            }
            return nil
        }
    }

    private mutating func tellOfDaemon() {
        guard !hasToldOfDaemon, !options.json else { return }
        hasToldOfDaemon = true
        Output.complain("btcctl: waiting: \(reason)")
    }
}
