import BTCPriceFeature
import Glibc

/// Shows lines once, or with `--watch` again every second, until it is stopped.
struct Repeating {
    let watch: Bool
    var json = false
    let isColored: Bool

    /// Whether the lines are redrawn in place.
    var isRedrawn: Bool { watch && !json && Screen.isPossible(environment: Output.environment) }

    /// - Parameters:
    ///   - answer: The lines to show. Its first error ends the command.
    ///   - print: Prints them if they are not redrawn.
    func run(_ answer: () throws(Complaint) -> [StyledLine], print: ([StyledLine]) -> Void) -> Int32 {
        let isRedrawn = isRedrawn
        let signals = watch ? Signals.catchThem() : -1
        if isRedrawn { TerminalMode.take() }
        var screen = Screen()
        func draw(_ lines: [StyledLine]) {
            Output.write(screen.draw(lines, in: Screen.size, isColored: isColored), to: STDOUT_FILENO)
        }
        var last: [StyledLine]?
        var lost: (complaint: Complaint, since: ContinuousClock.Instant)?
        while true {
            tzset()
            do throws(Complaint) {
                let lines = try answer()
                (last, lost) = (lines, nil)
                if isRedrawn { draw(lines) } else { print(lines) }
            } catch {
                guard let last else {
                    Output.tell(error, json: json)
                    return error.status
                }
                let since = lost?.since ?? .now
                if isRedrawn {
                    draw(Self.lost(last, error, for: since.duration(to: .now)))
                } else if error != lost?.complaint {
                    // The same error is reported only once.
                    Output.tell(error, json: json)
                }
                lost = (error, since)
            }
            guard watch else { return ExitStatus.success }
            Signals.wait(.seconds(1), on: signals)
            Signals.endIfAsked { if isRedrawn { Output.line("") } }
            if Signals.takeContinued() {
                screen.forget()
                if isRedrawn { TerminalMode.take() }
            }
        }
    }

    /// The lines shown last, dimmed, below a note that the daemon has not responded for this time, or on what it has responded.
    private static func lost(_ lines: [StyledLine], _ complaint: Complaint, for time: Duration) -> [StyledLine] {
        let note =
            complaint.word == "unreachable"
            ? "btc-priced has not responded for \(Table.text(time)); waiting for it." : complaint.message
        return Table.wrapped("", note, width: Screen.size.width).map { StyledLine([.init(text: $0, style: .alarm)]) }
            + lines.map { line in StyledLine(line.parts.map { .init(text: $0.text, style: .faint) }) }
    }
}
