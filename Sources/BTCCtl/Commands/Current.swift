import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Varlink

/// `btcctl current`: prints the price once.
enum Current {
    static func run(_ options: CurrentOptions) -> Int32 {
        do throws(Complaint) {
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

    /// Requests the daemon's state.
    /// - Parameter patience: The timeout of the connection and of the call.
    static func state(
        _ asking: AskingOptions, patience: Duration = .seconds(5)
    ) throws(Complaint) -> StateMessage {
        try Connecting.withDaemon(socket: asking.socket, patience: patience) {
            connection throws(ClientError) in
            try connection.getPrice(asking.policy, in: Connecting.currency(asking.currency))
        }
    }

    /// - Throws: ``Complaint`` if the price is older than `maxAge`, or its age is not known.
    static func check(_ state: PriceState, maxAge: Duration?, at now: ObservationTime) throws(Complaint) {
        guard let maxAge else { return }
        if state.isOfUnknownAge {
            throw Complaint(
                word: "tooOld",
                message:
                    "The age of the price is not known: it may be from before the last boot, and no tick has succeeded since.",
                status: ExitStatus.tooOld)
        }
        guard let (age, isEstimate) = state.age(at: now), age > maxAge else { return }
        let milliseconds = age.wholeMilliseconds
        // Below ten seconds, the whole ones alone could seem to contradict it.
        let seconds = milliseconds < 10_000 ? "\(Price(milliseconds, scale: 3))" : "\(milliseconds / 1000)"
        throw Complaint(
            word: "tooOld",
            message: "The price is \(isEstimate ? "about " : "")\(seconds) s old, older than --max-age allows.",
            status: ExitStatus.tooOld)
    }
}
