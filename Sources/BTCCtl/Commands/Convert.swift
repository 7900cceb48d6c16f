import BTCPriceCore
import BTCPriceFeature
import BTCPriceAPI
import Varlink

/// `btcctl convert`: prints one line per amount.
enum Convert {
    static func run(_ options: ConvertOptions) -> Int32 {
        do throws(Complaint) {
            let now = ObservationTime.now()
            var prices = CurrentPrices(asking: options.asking)
            for given in options.amounts {
                let price = try prices.price(in: currency(of: given.unit))
                let amount = given.amount(in: price.currency)
                let own = currency(of: amount.unit)
                let converted = amount.converted(at: price.value)
                var other: (price: CurrentPrices.Known, money: Price)?
                if let own, let wanted = options.asking.currency, wanted != own {
                    let theirs = try prices.price(in: wanted)
                    other = (theirs, (amount.value * theirs.value).divided(by: price.value, places: 8))
                }
                switch options.form {
                case .text:
                    let isDerived = [price, other?.price].contains { $0?.message.state.derivation != nil }
                    let last = other.map { Amount($0.money, .money($0.price.currency)) }
                    Output.line(text(amount, converted, price.currency, last, isDerived: isDerived))
                case .raw:
                    Output.line((other?.money ?? (own == nil ? converted.money : converted.btc)).description)
                case .json:
                    var object = json(amount, converted, price.currency)
                    object["state"] = .object(price.message.json(at: now))
                    if let other {
                        object[Amount.Unit.money(other.price.currency).name] = .string(other.money.description)
                        object["otherState"] = .object(other.price.message.json(at: now))
                    }
                    Output.line(Output.json("converted", .object(object)))
                }
            }
            if options.form != .json {
                for message in prices.fetched {
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

    private static func currency(of unit: Amount.Unit?) -> String? {
        if case .money(let currency) = unit { currency.rawValue } else { nil }
    }

    /// `0.05 BTC = 5,000,000 sat = $3,445.06`: the given amount, then the other units. By a derived price, `≈` instead of `=`.
    /// - Parameter last: The amount in one more currency; `nil` for none.
    static func text(
        _ amount: Amount, _ converted: ConvertedAmount, _ currency: Currency, _ last: Amount? = nil,
        isDerived: Bool = false
    ) -> String {
        let others = [Amount.Unit.btc, .sat, .money(currency)].filter { $0 != amount.unit }
        return ([amount] + others.map { Amount(converted[$0], $0) } + [last].compactMap(\.self))
            .map(AmountFormatter().string(from:)).joined(separator: isDerived ? " ≈ " : " = ")
    }

    /// An amount in every unit, all digits.
    static func json(_ amount: Amount, _ converted: ConvertedAmount, _ currency: Currency) -> JSONObject {
        [
            "amount": .string(amount.value.description), "unit": .string(amount.unit.name),
            "btc": .string(converted.btc.description), "sat": .string(converted.sat.description),
            Amount.Unit.money(currency).name: .string(converted.money.description),
        ]
    }
}

/// The prices that the amounts need. Each one is requested once.
private struct CurrentPrices {
    /// A price, and the state that it is from.
    struct Known {
        let value: Price
        let currency: Currency
        let message: StateMessage
    }

    let asking: AskingOptions
    private(set) var fetched: [StateMessage] = []
    /// The state in the default currency.
    private var standard: StateMessage?

    init(asking: AskingOptions) {
        self.asking = asking
    }

    /// - Parameter currency: `nil` for the default currency.
    mutating func price(in currency: String?) throws(Complaint) -> Known {
        let message = try state(in: currency)
        guard let quote = message.state.quote, let known = Currency(rawValue: quote.currency) else {
            throw .noPrice(message.state.failure)
        }
        return Known(value: quote.value, currency: known, message: message)
    }

    private mutating func state(in currency: String?) throws(Complaint) -> StateMessage {
        let wanted = currency ?? Connecting.currency(asking.currency)
        let known = wanted.map { wanted in fetched.first { $0.state.currency == wanted } } ?? standard
        if let known { return known }
        var asking = asking
        // btc-priced 0.1.0 keeps only dollars and has no `currency` parameter, so request dollars without it.
        let isOmitted = wanted == Currency.usd.rawValue && Connecting.currency(asking.currency) == nil
        asking.currency = isOmitted ? nil : wanted
        var message = try Current.state(asking)
        if asking.currency == nil { standard = message }
        if let wanted, message.state.currency != wanted {
            asking.currency = wanted
            message = try Current.state(asking)
        }
        fetched.append(message)
        return message
    }
}
