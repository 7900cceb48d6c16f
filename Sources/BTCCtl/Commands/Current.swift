import BTCPriceClient
import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import Varlink

/// `btcctl current`: one line, one status.
enum Current {
    static func run(_ options: CurrentOptions) -> Int32 {
        do throws(Complaint) {
            if options.output.form == .text, options.maxAge == nil { return try showLine(options) }
            let isHurried = options.output.bar != nil && options.asking.policy == .localFirst
            let message = try state(options.asking, patience: isHurried ? Bar.patience : .seconds(5))
            let now = ObservationTime.now()
            try check(message.state, maxAge: options.maxAge, at: now)
            PricePrinter(options.output).show(message, at: now)
            return message.state.quote == nil && options.output.bar == nil ? ExitStatus.noPrice : ExitStatus.success
        } catch {
            return options.output.tell(error)
        }
    }

    /// Asks a daemon for its state.
    /// - Parameter patience: How long it may take.
    static func state(
        _ asking: AskingOptions, patience: Duration = .seconds(5)
    ) throws(Complaint) -> StateMessage {
        try Connecting.withDaemon(socket: asking.socket, patience: patience) {
            connection throws(ClientError) in
            try connection.getPrice(asking.policy)
        }
    }

    /// - Throws: A complaint where the price is older than it may be.
    static func check(_ state: PriceState, maxAge: Duration?, at now: ObservationTime) throws(Complaint) {
        guard let maxAge, let (age, isEstimate) = state.age(at: now), age > maxAge else { return }
        let seconds = age.components.seconds
        throw Complaint(
            word: "tooOld",
            message: "The price is \(isEstimate ? "about " : "")\(seconds) s old, older than --max-age allows.",
            status: ExitStatus.tooOld)
    }

    /// The line alone, with as little work as it takes while the price is fresh.
    private static func showLine(_ options: CurrentOptions) throws(Complaint) -> Int32 {
        let line = try Connecting.withDaemon(socket: options.asking.socket) { connection throws(ClientError) in
            try connection.getLine(options.asking.policy)
        }
        switch line {
        case .fresh(let reply):
            Output.line(
                PriceTexts.line(
                    options.output.timestamps.string(from: reply.timestamp),
                    DollarFormatter().string(fromDigits: reply.value, currency: "USD")))
            return ExitStatus.success
        case .state(let message):
            PricePrinter(options.output).show(message, at: .now())
            return message.state.quote == nil ? ExitStatus.noPrice : ExitStatus.success
        }
    }
}
