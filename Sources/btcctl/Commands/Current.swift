import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// `btcctl current`: prints the price once.
enum Current {
    static let verb = Verb(
        command: Command(
            "current", "Print the price once.",
            details: """
                Examples:
                  btcctl current                                  Aug 25, 14:30 - $68,901.23
                  btcctl current --raw                            68901.23, for scripts
                  btcctl current --raw --max-age 1m --confirmed   fails if old or unconfirmed
                  btcctl current --format '{price} {age}'
                  btcctl current -c EUR                           Aug 25, 14:30 - €59,411.02

                Exit status: 0 with a price (a stale one says so on standard error), 1 with none, 64 for a wrong command line, \
                69 if the daemon can't be reached, 74 if standard output can't be written, 75 if the price is not as \
                --max-age, --confirmed or --max-uncertainty require. With --bar: 0 whatever fails.
                """,
            options: Option.daemon + [.currency] + Option.policies + Option.requirements + Option.forms + [.bar])
    ) { line throws(UsageError) in
        try run(line.asking(), line.output())
    }

    private static func run(_ asking: AskingOptions, _ output: PriceOutput) -> Int32 {
        do throws(Complaint) {
            let isHurried = output.bar != nil && asking.policy == .localFirst && asking.maxAge == nil
            let message = try state(asking, patience: isHurried ? Bar.patience : .seconds(5))
            PricePrinter(output).show(message, at: .now())
            return message.state.quote == nil && output.bar == nil ? ExitStatus.noPrice : ExitStatus.success
        } catch {
            return output.tell(error)
        }
    }

    /// Requests the daemon's state.
    /// - Parameter patience: The timeout of the connection and of the call.
    /// - Throws: ``Complaint``, also if the price is not as required.
    static func state(
        _ asking: AskingOptions, patience: Duration = .seconds(5)
    ) throws(Complaint) -> StateMessage {
        let result = try Connecting.withDaemon(asking.daemon, patience: patience) {
            connection throws(ClientError) in
            try connection.getPrice(asking.policy, in: Connecting.currency(asking.currency), maxAge: asking.maxAge)
        }
        let message: StateMessage
        do throws(PriceTooOld) { message = try result.get() } catch { throw .tooOld(error) }
        if let refusal = asking.requirements.refusal(of: message.state, at: .now()) {
            throw Complaint(refusal, message.state)
        }
        return message
    }
}
