import BTCPriceClient
import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import Glibc

/// `btcctl watch`: a line a tick on a pipe, a line redrawn on a terminal. It survives a restart of the daemon.
struct Watch {
    private let options: WatchOptions
    private let isTerminal: Bool
    private let model = PriceViewModel()
    private var screen = Screen()
    private var lastBanner: String?
    private var wasReached = false
    private var isLost = false

    init(_ options: WatchOptions) {
        self.options = options
        isTerminal = !options.json && Screen.isPossible { name in getenv(name).map { String(cString: $0) } }
    }

    /// Runs until it is stopped, or until it can't reach a daemon at its start.
    mutating func run() -> Int32 {
        Signals.catchThem()
        var pause: Duration = .milliseconds(50)
        while true {
            do throws(Complaint) {
                try follow()
                pause = .milliseconds(50)
            } catch {
                endIfAsked()
                guard wasReached else {
                    Output.tell(error, json: options.json)
                    return error.status
                }
                lost(error)
            }
            sleep(pause)
            endIfAsked()
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// Shows states until the connection ends, or until we were stopped and continued: what lies in the socket by then is old,
    /// and a new watch begins with the newest.
    private mutating func follow() throws(Complaint) {
        try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
            try connection.watch()
            var isFirst = true
            while true {
                do throws(ClientError) {
                    let message = try connection.nextState(timeout: isFirst ? .seconds(5) : nil)
                    isFirst = false
                    endIfAsked()
                    if Signals.takeContinued() { return }
                    show(message)
                } catch .interrupted {
                    endIfAsked()
                    if Signals.takeContinued() { return }
                }
            }
        }
    }

    private mutating func show(_ message: StateMessage) {
        wasReached = true
        isLost = false
        if options.json {
            Output.line(Output.json(message, at: .now()))
            return
        }
        model.show(message.state)
        if isTerminal {
            draw([model.line] + [model.banner].compactMap { $0 })
        } else {
            Output.line(model.line)
            if let banner = model.banner, banner != lastBanner { Output.complain(banner) }
            lastBanner = model.banner
        }
    }

    /// Says once that the daemon is gone. The last line stays, marked as what it is.
    private mutating func lost(_ complaint: Complaint) {
        guard !isLost else { return }
        isLost = true
        lastBanner = nil
        if isTerminal {
            draw([
                model.line, "btc-priced is gone; waiting for it. Displaying last updated value from \(model.timestamp)",
            ])
        } else {
            Output.tell(complaint, json: options.json)
        }
    }

    private mutating func draw(_ lines: [String]) {
        Output.write(screen.draw(lines, width: Screen.width), to: STDOUT_FILENO)
    }

    private func endIfAsked() {
        guard let number = Signals.toEnd else { return }
        if isTerminal { Output.write("\n", to: STDOUT_FILENO) }
        Signals.end(by: number)
    }

    private func sleep(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}
