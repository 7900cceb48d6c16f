import BTCPriceCore
import BTCPriceFeature
import BTCPriceAPI
import Varlink

/// `btcctl convert`: prints one line per amount.
enum Convert {
    static func run(_ options: ConvertOptions) -> Int32 {
        do throws(Complaint) {
            let now = ObservationTime.now()
            var states = PriceStates(asking: options.asking)
            for amount in options.amounts {
                let message = try states.state(in: currency(of: amount))
                try Current.check(message.state, maxAge: options.maxAge, at: now)
                guard let quote = message.state.quote, let currency = Currency(rawValue: quote.currency) else {
                    throw .noPrice(message.state.failure)
                }
                let converted = amount.converted(at: quote.value)
                switch options.form {
                case .text:
                    let isDerived = message.state.derivation != nil
                    Output.line(text(amount, converted, currency, isDerived: isDerived))
                case .raw:
                    let isMoney = self.currency(of: amount) != nil
                    Output.line((isMoney ? converted.btc : converted.money).description)
                case .json: Output.line(json(amount, converted, currency, message, at: now))
                }
            }
            if options.form != .json {
                for message in states.fetched {
                    // The line does not show what a derived price is made of.
                    let printer = PricePrinter(PriceOutput(form: .raw))
                    printer.model.show(message.state, at: now)
                    printer.tell()
                }
            }
            return ExitStatus.success
        } catch {
            Output.tell(error, json: options.form == .json)
            return error.status
        }
    }

    private static func currency(of amount: Amount) -> String? {
        if case .money(let currency) = amount.unit { currency.rawValue } else { nil }
    }

    /// `0.05 BTC = 5,000,000 sat = $3,445.06`: the given amount, then the other units. By a derived price, `≈` instead of `=`.
    static func text(
        _ amount: Amount, _ converted: ConvertedAmount, _ currency: Currency, isDerived: Bool = false
    ) -> String {
        let others = [Amount.Unit.btc, .sat, .money(currency)].filter { $0 != amount.unit }
        return ([amount] + others.map { Amount(converted[$0], $0) })
            .map(AmountFormatter().string(from:)).joined(separator: isDerived ? " ≈ " : " = ")
    }

    private static func json(
        _ amount: Amount, _ converted: ConvertedAmount, _ currency: Currency, _ message: StateMessage,
        at now: ObservationTime
    ) -> String {
        Output.json(
            "converted",
            .object([
                "amount": .string(amount.value.description), "unit": .string(amount.unit.name),
                "btc": .string(converted.btc.description), "sat": .string(converted.sat.description),
                Amount.Unit.money(currency).name: .string(converted.money.description),
                "state": .object(message.json(at: now)),
            ]))
    }
}

/// The states that the amounts need. Each one is requested once.
private struct PriceStates {
    let asking: AskingOptions
    private(set) var fetched: [StateMessage] = []

    init(asking: AskingOptions) {
        self.asking = asking
    }

    /// - Parameter currency: `nil` for the default currency.
    mutating func state(in currency: String?) throws(Complaint) -> StateMessage {
        let standard = Connecting.currency(asking.currency)
        if let known = fetched.first(where: { $0.state.currency == currency ?? standard ?? fetched[0].state.currency })
        {
            return known
        }
        var asking = asking
        // btc-priced 0.1.0 keeps only dollars and has no `currency` parameter, so request dollars without it.
        asking.currency = currency == Currency.usd.rawValue && standard == nil ? nil : currency ?? standard
        var message = try Current.state(asking)
        if let currency, message.state.currency != currency {
            asking.currency = currency
            message = try Current.state(asking)
        }
        fetched.append(message)
        return message
    }
}
