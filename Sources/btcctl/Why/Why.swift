import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// `btcctl why`: what is wrong, and what to do.
enum Why {
    static let verb = Verb(
        command: Command(
            "why", "Find out why there is no price, or why it is in doubt.",
            details: """
                Examples:
                  btcctl why

                The verdict comes first, with what explains the most. Then come at most ten lines, what is wrong first, each with \
                what to do. Root also sees the journal, and what only the daemon's user may read. Nothing is sent to an exchange: \
                'btc-priced --diagnose' tries a connection to each.

                Exit status: 0 if all is well, 10 if there is a current price and something is wrong, 1 if there is none, 69 if no \
                daemon responds, 64 for a wrong command line, 74 if standard output can't be written.
                """,
            options: Option.daemon + [configuration] + Option.times + [.json])
    ) { line throws(UsageError) in
        let findings = Findings(
            try line.daemon(), configuration: line.text(configuration), signals: Signals.catchThem())
        let report = WhyReport(findings, timestamps: line.timestamps, at: .now())
        if line.has(.json) {
            Output.line(Output.json("why", .object(report.json)))
        } else {
            let width = isatty(STDOUT_FILENO) == 1 ? Screen.size.width : 80
            Output.line(report.text(width: width).joined(separator: "\n"))
        }
        return report.state.exitStatus
    }

    private static let configuration = Option(
        "--config", value: "file", "The daemon's configuration file, if it is not the usual one.", completion: .files)
}

extension WhyReport {
    var json: JSONObject {
        [
            "state": .string(state.rawValue), "verdict": .string(verdict),
            "lines": .array(lines.map { .object($0.json) }),
        ]
    }

    /// - Parameter width: The maximum number of columns.
    func text(width: Int) -> [String] {
        // The verdict has the text of the first line.
        let (first, others) = (lines.prefix { !$0.isGood }.prefix(1), lines.drop { $0.text == cause })
        let names = others.map(\.subject.count).max() ?? 0
        return Table.wrapped("", verdict, width: width) + first.flatMap { advice($0, behind: 0, width: width) }
            + others.flatMap { line in
                let head = "\(line.isGood ? " " : "!") \(Table.padded(line.subject, names)): "
                return Table.wrapped(head, line.text, width: width) + advice(line, behind: head.count, width: width)
            }
    }

    private func advice(_ line: Line, behind indent: Int, width: Int) -> [String] {
        line.advice.flatMap { $0.isEmpty ? nil : Table.wrapped("\(Table.padded("", indent))-> ", $0, width: width) }
            ?? []
    }
}
