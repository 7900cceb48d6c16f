import BTCPriceClient
import BTCPriceCore
import BTCPriceVarlink
import Glibc
import Varlink

/// `btcctl watch`: follows the daemon, over its restarts, and hands each new state to a sink.
struct Watch {
    /// Without a word for so long, the daemon is asked anew. With a longer tick that is no sign of trouble.
    private static let longestSilence: Duration = .seconds(5)

    private static let shortestPause: Duration = .milliseconds(50)

    private let socket: String?
    private let output: PriceOutput
    private var sink: any WatchSink
    private let clock = ContinuousClock()
    private var lastShown: StateMessage?
    /// The socket that answered. Another daemon's prices are not what this watch has begun with.
    private var reached: String?
    private var isLost = false
    /// Before the next attempt to reach a daemon that is gone.
    private var pause = Self.shortestPause
    /// Readable once a signal has come.
    private var signals: Int32 = -1

    /// Does it, and gives the exit status.
    // Not inlined: what it is made of is set up at run time, which `current` need not wait for.
    @inline(never)
    static func run(_ options: WatchOptions) -> Int32 {
        var watch = Watch(options)
        return watch.run()
    }

    private init(_ options: WatchOptions) {
        socket = options.socket
        output = options.output
        let isTerminal = Screen.isPossible(environment: Connecting.environment)
        let isColored = options.color.isWanted(isTerminal: isTerminal, environment: Connecting.environment)
        if let command = options.command {
            sink = ExecSink(command, options.condition, output)
        } else if let bar = output.bar {
            sink = BarSink(bar, output)
        } else if isTerminal, output.form == .text {
            sink = TerminalSink(output, isColored: isColored)
        } else {
            sink = LineSink(output, isColored: isColored)
        }
    }

    /// Runs until it is stopped, or until it can't reach a daemon at its start.
    private mutating func run() -> Int32 {
        signals = Signals.catchThem()
        while true {
            do throws(Complaint) {
                try follow()
            } catch {
                endIfAsked()
                guard reached != nil || sink.waitsForDaemon else { return output.tell(error) }
                if !isLost { sink.lost(error) }
                isLost = true
            }
            Signals.wait(pause, on: signals)
            endIfAsked()
            if wasContinued() { sink.continued() }
            sink.refresh()
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// Shows states until the connection ends, or until we were stopped and continued: what lies in the socket by then is old,
    /// and a new watch begins with the newest. After a silence a new watch shows whether the daemon still lives.
    private mutating func follow() throws(Complaint) {
        try Connecting.withDaemon(socket: reached ?? socket, patience: sink.patience) {
            connection throws(ClientError) in
            if reached == nil, sink.tellsOfSimulator, let note = try Self.noteOnSources(&connection) {
                sink.tell(note)
            }
            try connection.watch()
            var heard: ContinuousClock.Instant?
            let begun = clock.now
            while true {
                let silence = (heard ?? begun).duration(to: clock.now)
                // The first answer is at hand: a bar does not wait for it as long as for a tick.
                let patience = heard == nil ? sink.patience : Self.longestSilence
                let left = max(.milliseconds(1), patience - silence)
                do throws(ClientError) {
                    let message = try connection.nextState(
                        timeout: min(sink.refreshPeriod ?? left, left), newestOnly: sink.wantsNewestOnly,
                        interruption: signals, outlet: sink.prints ? STDOUT_FILENO : -1)
                    reached = connection.path
                    heard = clock.now
                    endIfAsked()
                    if wasContinued() {
                        sink.continued()
                        return
                    }
                    show(message)
                } catch {
                    Signals.drain(signals)
                    endIfAsked()
                    if wasContinued() {
                        sink.continued()
                        return
                    }
                    switch error {
                    case .interrupted: sink.refresh()
                    case .timedOut where left > .milliseconds(1): sink.refresh()
                    // Only before it has answered another path is a way: after that, this one is asked anew.
                    case .timedOut where heard != nil, .closed where heard != nil: return
                    default: throw error
                    }
                }
            }
        }
    }

    /// What is to be said of sources that are not requested at the exchanges' own addresses; `nil` if nothing is, or if the daemon's
    /// status can't be read. A reply that did not come would be read as the first state: that ends the connection.
    private static func noteOnSources(_ connection: inout PriceConnection) throws(ClientError) -> String? {
        do throws(ClientError) {
            return StatusText.elsewhere(try connection.getStatus().elsewhere)
        } catch {
            switch error {
            case .refused, .unintelligible: return nil
            case .unreachable, .timedOut, .closed, .interrupted: throw error
            }
        }
    }

    /// Whether we were stopped and continued: then the state is shown again even if it is the same.
    private mutating func wasContinued() -> Bool {
        guard Signals.takeContinued() else { return false }
        lastShown = nil
        return true
    }

    private mutating func show(_ message: StateMessage) {
        // A new watch begins with the current state, which may be the one that was shown last.
        pause = Self.shortestPause
        guard isLost || message != lastShown else { return }
        lastShown = message
        isLost = false
        sink.show(message)
    }

    private func endIfAsked() {
        Signals.endIfAsked { sink.finish() }
        if sink.prints { Output.endIfUnread() }
    }
}
