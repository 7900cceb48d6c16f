import BTCPriceClient
import BTCPriceCore
import BTCPriceFeature
import BTCPriceVarlink
import Varlink

/// `btcctl current`: one line, one status.
enum Current {
    static func run(_ options: CurrentOptions) -> Int32 {
        do throws(Complaint) {
            let message = try Connecting.withDaemon(socket: options.socket) { connection throws(ClientError) in
                try connection.getPrice(options.policy)
            }
            let now = ObservationTime.now()
            try check(message.state, maxAge: options.maxAge, at: now)
            show(message, json: options.json, at: now)
            return message.state.quote == nil ? ExitStatus.noPrice : ExitStatus.success
        } catch {
            Output.tell(error, json: options.json)
            return error.status
        }
    }

    private static func check(_ state: PriceState, maxAge: Duration?, at now: ObservationTime) throws(Complaint) {
        guard let maxAge, let (age, isEstimate) = state.age(at: now), age > maxAge else { return }
        let seconds = age.components.seconds
        throw Complaint(
            word: "tooOld",
            message: "The price is \(isEstimate ? "about " : "")\(seconds) s old, older than --max-age allows.",
            status: ExitStatus.tooOld)
    }

    static func show(_ message: StateMessage, json: Bool, at now: ObservationTime) {
        if json {
            Output.line(Output.json(message, at: now))
            return
        }
        let model = PriceViewModel()
        model.show(message.state)
        Output.line(model.line)
        for note in model.notes { Output.complain(note) }
    }
}
