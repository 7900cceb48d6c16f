import BTCPriceCore
import BTCPriceFeature
import BTCPriceAPI
import Varlink

/// `btcctl convert`: prints one line per amount.
enum Convert {
    static func run(_ options: ConvertOptions) -> Int32 {
        do throws(Complaint) {
            let message = try Current.state(options.asking)
            let now = ObservationTime.now()
            try Current.check(message.state, maxAge: options.maxAge, at: now)
            guard let quote = message.state.quote, quote.currency == "USD" else {
                throw .noPrice(message.state.failure)
            }
            for amount in options.amounts {
                let converted = amount.converted(at: quote.value)
                switch options.form {
                case .text: Output.line(text(amount, converted))
                case .raw: Output.line(converted[amount.unit == .usd ? .btc : .usd].description)
                case .json: Output.line(json(amount, converted, message, at: now))
                }
            }
            if options.form != .json {
                let printer = PricePrinter(PriceOutput())
                printer.model.show(message.state, at: now)
                printer.tell()
            }
            return ExitStatus.success
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
    }

    /// `0.05 BTC = 5,000,000 sat = $3,445.06`: the given amount, then the other units.
    private static func text(_ amount: Amount, _ converted: ConvertedAmount) -> String {
        let others = Amount.Unit.allCases.filter { $0 != amount.unit }
        return ([amount] + others.map { Amount(converted[$0], $0) })
            .map(AmountFormatter().string(from:)).joined(separator: " = ")
    }

    private static func json(
        _ amount: Amount, _ converted: ConvertedAmount, _ message: StateMessage, at now: ObservationTime
    ) -> String {
        Output.json(
            "converted",
            .object([
                "amount": .string(amount.value.description), "unit": .string(amount.unit.rawValue),
                "btc": .string(converted.btc.description), "sat": .string(converted.sat.description),
                "usd": .string(converted.usd.description), "state": .object(Output.object(message, at: now)),
            ]))
    }
}
