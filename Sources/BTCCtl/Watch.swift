import BTCPriceClient
import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import Varlink
import Glibc

/// `btcctl watch`: a line a tick on a pipe, a line redrawn on a terminal. It survives a restart of the daemon.
struct Watch {
    /// Without a word for so long, the daemon is asked anew. With a longer tick that is no sign of trouble.
    private static let longestSilence: Duration = .seconds(5)

    private static let shortestPause: Duration = .milliseconds(50)

    private let options: WatchOptions
    private let isTerminal: Bool
    private let model = PriceViewModel()
    private var screen = Screen()
    private var lastShown: StateMessage?
    private var lastBanner: String?
    private var hasWarned = false
    /// The socket that answered. Another daemon's prices are not what this watch has begun with.
    private var reached: String?
    private var isLost = false
    /// Before the next attempt to reach a daemon that is gone.
    private var pause = Self.shortestPause
    /// Readable once a signal has come.
    private var signals: Int32 = -1

    init(_ options: WatchOptions) {
        self.options = options
        isTerminal = !options.json && Screen.isPossible(environment: Connecting.environment)
    }

    /// Runs until it is stopped, or until it can't reach a daemon at its start.
    mutating func run() -> Int32 {
        signals = Signals.catchThem()
        while true {
            do throws(Complaint) {
                try follow()
            } catch {
                Signals.endIfAsked(isDrawing: isTerminal)
                guard reached != nil else {
                    Output.tell(error, json: options.json)
                    return error.status
                }
                lost(error)
            }
            Signals.wait(pause, on: signals)
            Signals.endIfAsked(isDrawing: isTerminal)
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// Shows states until the connection ends, or until we were stopped and continued: what lies in the socket by then is old,
    /// and a new watch begins with the newest. After a silence a new watch shows whether the daemon still lives.
    private mutating func follow() throws(Complaint) {
        try Connecting.withDaemon(socket: reached ?? options.socket) { connection throws(ClientError) in
            try connection.watch()
            var isFirst = true
            while true {
                do throws(ClientError) {
                    let message = try connection.nextState(
                        timeout: Self.longestSilence, interruption: signals)
                    reached = connection.path
                    isFirst = false
                    Signals.endIfAsked(isDrawing: isTerminal)
                    if wasContinued() { return }
                    show(message)
                } catch {
                    Signals.drain(signals)
                    Signals.endIfAsked(isDrawing: isTerminal)
                    switch error {
                    case .interrupted where !wasContinued(): continue
                    case .interrupted: return
                    // Only before it has answered another path is a way: after that, this one is asked anew.
                    case .timedOut where !isFirst, .closed where !isFirst: return
                    default: throw error
                    }
                }
            }
        }
    }

    /// Whether we were stopped and continued. Others have written on the terminal meanwhile: nothing drawn before is taken back,
    /// and the state is shown again even if it is the same.
    private mutating func wasContinued() -> Bool {
        guard Signals.takeContinued() else { return false }
        screen = Screen()
        lastShown = nil
        return true
    }

    private mutating func show(_ message: StateMessage) {
        // A new watch begins with the current state, which may be the one that was shown last.
        pause = Self.shortestPause
        guard isLost || message != lastShown else { return }
        lastShown = message
        isLost = false
        if options.json {
            Output.line(Output.json(message, at: .now()))
            return
        }
        model.show(message.state)
        if isTerminal {
            draw([model.line] + model.notes)
        } else {
            Output.line(model.line)
            if let banner = model.banner, banner != lastBanner { Output.complain(banner) }
            lastBanner = model.banner
            // Once, not with every change of the figure in it.
            if let warning = model.warning, !hasWarned { Output.complain(warning) }
            hasWarned = model.warning != nil
        }
    }

    /// Says once that the daemon is gone. The last line stays, marked as what it is.
    private mutating func lost(_ complaint: Complaint) {
        guard !isLost else { return }
        isLost = true
        lastBanner = nil
        if isTerminal {
            model.updatesFailed()
            draw([model.line] + model.notes + ["btc-priced can't be reached; waiting for it."])
        } else {
            Output.tell(complaint, json: options.json)
        }
    }

    private mutating func draw(_ lines: [String]) {
        Output.write(screen.draw(lines, in: Screen.size), to: STDOUT_FILENO)
    }
}
