import BTCPriceCore
import BTCPriceFeature
import CommandLine

/// An alert, as the file or a command line has it.
struct Alert: Sendable, Hashable {
    let name: String
    /// ISO 4217
    let currency: String
    let rule: AlertRule
    /// Whether a desktop notification is shown.
    let notifies: Bool
    /// A program that is run, and its arguments; empty for none.
    let command: [String]
    /// When it was added, as the file has it; `nil` for one that people have written.
    var added: String?

    /// What an alert remembers is of this: if it changes, it is a new alert.
    var identity: String { [condition, added].compactMap(\.self).joined(separator: ", ") }

    /// The condition's currency and limits, in words: `below $60,000.00, for 5 min`.
    var condition: String {
        let money = { (value: Price) in MoneyFormatter().string(from: value, currency: currency) }
        var text =
            switch rule.condition {
            case .above(let bound): "above \(money(bound))"
            case .below(let bound): "below \(money(bound))"
            case .change(.amount(let amount), let within): "a change of \(money(amount))\(Self.span(within))"
            case .change(.percent(let percent), let within): "a change of \(percent) %\(Self.span(within))"
            case .stale(let longest): "no fresh price in \(currency) for \(longest.wholeUnits)"
            case .unsure(nil): "an unsure price in \(currency)"
            case .unsure(let bound?): "an unsure price in \(currency), or ± above \(bound) %"
            }
        if rule.hold > .zero { text += ", for \(rule.hold.wholeUnits)" }
        switch rule.trust {
        case .confirmed: text += ", confirmed"
        case .any: text += ", also unconfirmed"
        case .lasting: break
        }
        return text
    }

    /// When it fires again, in words; empty if that is whenever the condition begins to hold.
    var repetition: String {
        if rule.isOnce { return "once" }
        return [
            rule.rearm > 0 ? "again after \(rule.rearm) % back" : nil,
            rule.pause > .zero ? "at most every \(rule.pause.wholeUnits)" : nil,
        ].compactMap(\.self).joined(separator: ", ")
    }

    private static func span(_ within: Duration?) -> String { within.map { " within \($0.wholeUnits)" } ?? "" }

    /// What is wrong with an alert in a currency that the daemon does not keep.
    static func notKept(_ currency: String) -> String { "the daemon keeps no price in \(currency.printable)" }

    /// What it does without a price.
    var withoutPrice: String {
        rule.isOfTime ? "it fires, as there is no fresh price" : "this alert does not fire"
    }

    /// What ``isName(_:)`` requires.
    static let nameRule = "a name has letters, digits, - and _, at most 48 of them"
    /// Whether a text can be an alert's name. With the time of a firing it is an identifier of at most 64 characters, as ntfy takes it.
    static func isName(_ text: String) -> Bool { text.isWord(with: "-_") && text.utf8.count <= 48 }
}

/// What an alert is made of: the names of its keys in the file, and of the options of `add`.
enum AlertField: String, CaseIterable {
    case below, above, change, within
    case whenStale = "when-stale"
    case whenUnsure = "when-unsure"
    case maxUncertainty = "max-uncertainty"
    case currency
    case hold = "for"
    case rearm, once
    case atMostEvery = "at-most-every"
    case confirmed, unconfirmed, notify, exec

    var isFlag: Bool {
        switch self {
        case .whenUnsure, .once, .confirmed, .unconfirmed, .notify: true
        default: false
        }
    }
}

/// Where the fields of an alert are read.
protocol AlertFields {
    associatedtype Failure: Error

    func isSet(_ field: AlertField) throws(Failure) -> Bool
    /// The value of a field; `nil` if it is not set.
    func value<Value>(
        _ field: AlertField, _ read: (String) throws(UsageError) -> Value
    ) throws(Failure) -> Value?
    /// The words of the command; empty for none.
    func command() throws(Failure) -> [String]
    func failure(_ field: AlertField?, _ problem: String) -> Failure
}

extension Alert {
    /// How far the price must move back before an alert fires again, unless another distance is set, in percent.
    static let usualRearm: Price = 1
    private static let percents = Price.zero...50

    /// - Parameter usual: The currency if none is named.
    init<Fields: AlertFields>(
        _ name: String, _ fields: Fields, usual: () throws(Fields.Failure) -> String
    ) throws(Fields.Failure) {
        var named: Currency?
        func bound(_ text: String) throws(UsageError) -> Price {
            let (price, currency) = try positive(text, "60000, 60k or $60,000.50")
            named = named ?? currency
            return price
        }
        let (below, above) = (try fields.value(.below, bound), try fields.value(.above, bound))
        let moved = try fields.value(.change) { text throws(UsageError) in
            let (value, isPercent, currency) = try movement(text)
            named = named ?? currency
            return isPercent ? PriceChange.percent(value) : .amount(value)
        }
        let within = try fields.value(.within) { text throws(UsageError) in
            let span = try longEnough(text)
            guard span <= .seconds(7 * 86_400) else { throw UsageError("it is at most 7d") }
            return span
        }
        let stale = try fields.value(.whenStale, longEnough)
        let uncertainty = try fields.value(.maxUncertainty) { text throws(UsageError) in
            guard let percent = PriceRequirements.percent(text) else {
                throw UsageError("it is a percentage such as 0.5%")
            }
            return percent
        }
        let isUnsure = try fields.isSet(.whenUnsure)
        let conditions: [AlertRule.Condition?] = [
            below.map { .below($0) }, above.map { .above($0) }, moved.map { .change($0, within: within) },
            stale.map { .stale($0) }, isUnsure ? .unsure(bound: uncertainty) : nil,
        ]
        guard let condition = conditions.compactMap(\.self).first, conditions.count(where: { $0 != nil }) == 1 else {
            throw fields.failure(
                nil, "it needs one condition: below, above, change, when-stale or when-unsure; for two, make two alerts"
            )
        }
        var rule = AlertRule(condition)
        func refuse(_ field: AlertField, unless isOf: Bool, _ others: String) throws(Fields.Failure) {
            guard !isOf, try fields.isSet(field) else { return }
            throw fields.failure(field, "it belongs to \(others)")
        }
        let (isBound, isPrice) = (below != nil || above != nil, stale == nil && !isUnsure)
        try refuse(.within, unless: moved != nil, "change")
        try refuse(.maxUncertainty, unless: isUnsure, "when-unsure")
        try refuse(.rearm, unless: isBound, "below and above")
        for field in [AlertField.confirmed, .unconfirmed] {
            try refuse(field, unless: isPrice, "below, above and change")
        }
        if moved != nil, within == nil { throw fields.failure(.change, "it needs a span of time: within, such as 1h") }
        let isConfirmed = try fields.isSet(.confirmed)
        if isConfirmed, try fields.isSet(.unconfirmed) {
            throw fields.failure(.unconfirmed, "confirmed and unconfirmed exclude each other")
        }
        if isConfirmed { rule.trust = .confirmed } else if try fields.isSet(.unconfirmed) { rule.trust = .any }
        rule.hold = try fields.value(.hold, duration) ?? .zero
        rule.pause = try fields.value(.atMostEvery, duration) ?? .zero
        rule.isOnce = try fields.isSet(.once)
        let rearm = try fields.value(.rearm) { text throws(UsageError) in
            guard let percent = Price(text.hasSuffix("%") ? String(text.dropLast()) : text),
                Self.percents.contains(percent)
            else { throw UsageError("it is a percentage from 0 to 50, such as 1%") }
            return percent
        }
        rule.rearm = isBound ? rearm ?? Self.usualRearm : .zero
        let code = try fields.value(.currency, currencyCode)
        if let code, let named, named.rawValue != code {
            throw fields.failure(.currency, "the amount is in \(named): write both in one currency")
        }
        let command = try fields.command()
        var notifies = command.isEmpty
        if !notifies { notifies = try fields.isSet(.notify) }
        var currency = code ?? named?.rawValue
        if currency == nil { currency = try usual() }
        self.init(name: name, currency: currency ?? "", rule: rule, notifies: notifies, command: command)
    }
}

/// Reads a duration that can be waited for by a program that looks once a second.
private func longEnough(_ text: String) throws(UsageError) -> Duration {
    let length = try duration(text)
    guard length >= .seconds(10) else { throw UsageError("it is at least 10s") }
    return length
}
