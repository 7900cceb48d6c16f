import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

/// An amount of the command line.
struct GivenAmount: Equatable {
    let value: Price
    /// `nil` for the currency of the price.
    var unit: Amount.Unit?

    /// - Parameter currency: The currency of the price.
    func amount(in currency: Currency) -> Amount { Amount(value, unit ?? .money(currency)) }
}

/// `btcctl convert`: prints one line per amount.
enum Convert {
    static let verb = Verb(
        command: Command(
            "convert", "Print what amounts are worth in bitcoin, satoshis and money.",
            details: """
                Examples:
                  btcctl convert 0.05btc          0.05 BTC in satoshis and dollars
                  btcctl convert 250usd 70k       what 250 and 70,000 dollars buy
                  btcctl convert 0.5 btc --raw    the exact number of dollars alone
                  btcctl convert 0.05btc eur      0.05 BTC in satoshis and euros
                  btcctl convert 250eur usd       what 250 euros buy, and their value in dollars

                An amount is 0.05btc, .5 btc, 100000sat, 250usd, '$70,000' or 70k; without an amount, one unit of the currency \
                is converted. The code of a currency alone says what the others are converted to. Money is converted to whole \
                satoshis, and to eight places of another currency. All other conversions are exact to 18 digits; --raw and \
                --json print them all.

                Exit status: 0 with a price (a stale one says so on standard error), 1 with none, 64 for a wrong command line, \
                69 if the daemon can't be reached, 74 if standard output can't be written, 75 if the price is not as \
                --max-age, --confirmed or --max-uncertainty require.
                """,
            options: Option.daemon + [.currency] + Option.policies + Option.requirements + [
                .json,
                Option("--raw", "Print the exact number alone: money, or bitcoin for money without another currency."),
            ],
            words: [
                Words(
                    "amount", "What to convert: 0.05btc, 100000sat, 250usd, '$70,000', 70k usd.",
                    count: 0...Int(Int32.max))
            ])
    ) { line throws(UsageError) in
        let form = try line.plainForm()
        var asking = try line.asking()
        let (amounts, currency) = try read(line.words, in: asking.currency)
        asking.currency = currency
        return run(asking, amounts.isEmpty ? [GivenAmount(value: 1)] : amounts, form)
    }

    /// Reads amounts and the currency to convert them to, which may be named by a code alone as the last word.
    static func read(_ words: [String], in named: String?) throws(UsageError) -> ([GivenAmount], String?) {
        var (texts, currency) = (joined(words), named)
        if let last = texts.last, texts.count > 1, let code = Currency(rawValue: last.uppercased()) {
            guard named ?? code.rawValue == code.rawValue else {
                throw UsageError("--currency \(named ?? "") and '\(last)' exclude each other")
            }
            currency = code.rawValue
            texts.removeLast()
        }
        var amounts: [GivenAmount] = []
        for text in texts { amounts.append(try amount(text)) }
        return (amounts, currency)
    }

    /// Joins a number and its unit if they are two words: `0.05 btc`.
    private static func joined(_ words: [String]) -> [String] {
        var texts: [String] = []
        for word in words {
            // Join a number and a unit even if they are not a valid amount, so that the error names both.
            if let last = texts.last, Amount(last) == nil,
                last.last.map({ $0.isNumber || "kKmM".contains($0) }) == true,
                Amount.Unit(name: word.lowercased()) != nil
            {
                texts[texts.count - 1] = last + word
            } else {
                texts.append(word)
            }
        }
        return texts
    }

    /// Reads an amount. A unit alone means one of it: `btc` is 1 BTC. A number with k or M may have no unit.
    private static func amount(_ text: String) throws(UsageError) -> GivenAmount {
        if let unit = Amount.Unit(name: text.lowercased()) { return GivenAmount(value: 1, unit: unit) }
        if let amount = Amount(text) { return GivenAmount(value: amount.value, unit: amount.unit) }
        if text.last.map({ "kKmM".contains($0) }) == true, let amount = Amount(text, unit: .money(.usd)) {
            return GivenAmount(value: amount.value)
        }
        throw UsageError("'\(text)' is not an amount: \(Amount.mistake(in: text))")
    }

    private static func run(_ asking: AskingOptions, _ amounts: [GivenAmount], _ form: PlainForm) -> Int32 {
        Output.status(json: form == .json) { () throws(Complaint) in
            let now = ObservationTime.now()
            var prices = CurrentPrices(asking: asking)
            for given in amounts {
                let converted = try convert(given, &prices)
                switch form {
                case .text: Output.line(converted.text)
                case .raw: Output.line(converted.value.description)
                case .json:
                    var object = converted.json
                    object["state"] = .object(converted.price.message.json(at: now))
                    if let other = converted.other {
                        object["otherState"] = .object(other.message.json(at: now))
                    }
                    Output.line(Output.json("converted", .object(object)))
                }
            }
            if form != .json {
                for message in prices.fetched {
                    // The line does not show what a derived price is made of.
                    let printer = PricePrinter(PriceOutput(form: .raw))
                    printer.model.show(message.state, at: now)
                    printer.tell()
                }
            }
            return ExitStatus.success
        }
    }

    /// An amount, and what it is worth.
    struct Converted {
        let amount: Amount
        let price: CurrentPrices.Known
        /// The price in a currency that is not the amount's.
        var other: CurrentPrices.Known?

        var text: String { price.known.text(amount, and: other?.known) }

        /// Money; bitcoin for money without another currency.
        var value: Price {
            let converted = amount.converted(at: price.value)
            return other.map { price.known.money(amount.value, by: $0.known).money }
                ?? (amount.unit.isMoney ? converted.btc : converted.money)
        }

        var json: JSONObject {
            var object = Convert.json(amount, price.known)
            if let other {
                let name = Amount.Unit.money(other.currency).name
                let (money, range) = price.known.money(amount.value, by: other.known)
                object[name] = .string(money.description)
                object["approximate"] = .bool(price.known.isApproximate || other.known.isApproximate)
                if let range {
                    var ranges = JSONObject()
                    if case .object(let own)? = object["range"] { ranges = own }
                    ranges[name] = Convert.json(range)
                    object["range"] = .object(ranges)
                }
            }
            return object
        }
    }

    static func convert(_ given: GivenAmount, _ prices: inout CurrentPrices) throws(Complaint) -> Converted {
        let price = try prices.price(in: currency(of: given.unit))
        var converted = Converted(amount: given.amount(in: price.currency), price: price)
        if let own = currency(of: converted.amount.unit), let wanted = prices.asking.currency, wanted != own {
            converted.other = try prices.price(in: wanted)
        }
        return converted
    }

    private static func currency(of unit: Amount.Unit?) -> String? {
        if case .money(let currency) = unit { currency.rawValue } else { nil }
    }

    private static func json(_ range: ClosedRange<Price>) -> JSON {
        .object(["low": .string(range.lowerBound.description), "high": .string(range.upperBound.description)])
    }

    /// An amount in every unit, all digits, and the range of those that an approximate price makes.
    static func json(_ amount: Amount, _ price: ConversionPrice) -> JSONObject {
        let units = [Amount.Unit.btc, .sat, .money(price.currency)]
        let converted = amount.converted(at: price.value)
        var object: JSONObject = [
            "amount": .string(amount.value.description), "unit": .string(amount.unit.name),
        ]
        for unit in units { object[unit.name] = .string(converted[unit].description) }
        object["approximate"] = .bool(price.isApproximate)
        var range = JSONObject()
        for unit in units where amount.unit.isMoney != unit.isMoney {
            guard let ends = price.range(of: amount, in: unit) else { continue }
            range[unit.name] = json(ends)
        }
        if !range.members.isEmpty { object["range"] = .object(range) }
        return object
    }
}

/// The prices that the amounts need. Each one is requested once.
struct CurrentPrices {
    /// A price, and the state that it is from.
    struct Known {
        let known: ConversionPrice
        let message: StateMessage

        var value: Price { known.value }
        var currency: Currency { known.currency }
    }

    let asking: AskingOptions
    private(set) var fetched: [StateMessage] = []
    /// The state in the default currency.
    private var standard: StateMessage?

    init(asking: AskingOptions) { self.asking = asking }

    /// - Parameter currency: `nil` for the default currency.
    mutating func price(in currency: String?) throws(Complaint) -> Known {
        let message = try state(in: currency)
        guard let known = ConversionPrice(message.state) else { throw .noPrice(message.state.failure) }
        return Known(known: known, message: message)
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
