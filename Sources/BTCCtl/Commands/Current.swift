import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import Varlink

/// `btcctl current`: prints the price once.
enum Current {
    static func run(_ options: CurrentOptions) -> Int32 {
        do throws(Complaint) {
            let isHurried =
                options.output.bar != nil && options.asking.policy == .localFirst && options.asking.maxAge == nil
            let message = try state(options.asking, patience: isHurried ? Bar.patience : .seconds(5))
            PricePrinter(options.output).show(message, at: .now())
            return message.state.quote == nil && options.output.bar == nil ? ExitStatus.noPrice : ExitStatus.success
        } catch {
            return options.output.tell(error)
        }
    }

    /// Requests the daemon's state.
    /// - Parameter patience: The timeout of the connection and of the call.
    /// - Throws: ``Complaint``, also if the price is too old.
    static func state(
        _ asking: AskingOptions, patience: Duration = .seconds(5)
    ) throws(Complaint) -> StateMessage {
        let result = try Connecting.withDaemon(socket: asking.socket, patience: patience) {
            connection throws(ClientError) in
            try connection.getPrice(asking.policy, in: Connecting.currency(asking.currency), maxAge: asking.maxAge)
        }
        do throws(PriceTooOld) { return try result.get() } catch { throw .tooOld(error) }
    }
}
