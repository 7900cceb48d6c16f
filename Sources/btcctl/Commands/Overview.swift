import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// `btcctl` without a command, on a terminal: prints the price, its last 24 hours and its state, and names other commands.
enum Overview {
    // Not inlined, so that `current` does not pay for the run-time setup of these types.
    @inline(never)
    static func run() -> Int32 {
        Output.status { () throws(Complaint) in
            let message = try Current.state(AskingOptions())
            let now = ObservationTime.now()
            let model = PriceViewModel()
            model.show(message.state, at: now)
            var view = WatchView(isUnicode: Output.isUnicode)
            view.see(message.state)
            let isColored = ColorChoice.auto.isWanted(isTerminal: true, environment: Output.environment)
            for line in view.lines(message.state, model, at: now, width: Screen.size.width) {
                Output.line(line.text(isColored: isColored))
            }
            Output.line(
                "Go on with 'btcctl watch', 'btcctl chart' or 'btcctl sources'; 'btcctl help' has all commands.")
            return message.state.quote == nil ? ExitStatus.noPrice : ExitStatus.success
        }
    }
}
