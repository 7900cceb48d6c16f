import BTCPriceCore
import BTCPriceFeature

/// What `wait` waits for, and when `watch --exec` runs its command.
struct PriceCondition: Equatable {
    enum Kind: String, CaseIterable {
        case above
        case below
        case change
    }

    var above: Price?
    var below: Price?
    var change: PriceChange?
    /// The currency that the amounts name, as `$70,000` and `70k usd` do; `nil` for that of the price.
    var currency: Currency?

    /// Why the condition can't be checked for prices in this currency; `nil` if it can.
    func mistake(in code: String) -> String? {
        guard let currency, currency.rawValue != code else { return nil }
        return "the condition is in \(currency), and the price in \(code): write it in \(code), or add -c \(currency)"
    }

    /// The number of conditions that are set.
    var count: Int { (above == nil ? 0 : 1) + (below == nil ? 0 : 1) + (change == nil ? 0 : 1) }
}

/// Checks prices against the conditions. Each condition is reported once, when it begins to hold. A change is measured from the
/// first price, then from the price at which a change was last reported.
struct ConditionWatch {
    private let condition: PriceCondition
    /// That of the prices; `nil` before the first one.
    private var currency: String?
    private var watched: [(kind: PriceCondition.Kind, evaluator: AlertEvaluator)] = []

    init(_ condition: PriceCondition) {
        self.condition = condition
        func watch(_ kind: PriceCondition.Kind, _ rule: AlertRule.Condition?) {
            guard let rule else { return }
            var alert = AlertRule(rule)
            // What does not count is not passed on.
            alert.trust = .any
            // A price that is beyond from the start counts.
            watched.append((kind, AlertEvaluator(alert, AlertState(position: .inside))))
        }
        watch(.above, condition.above.map { .above($0) })
        watch(.below, condition.below.map { .below($0) })
        watch(.change, condition.change.map { .change($0, within: nil) })
    }

    /// Checks the next price. In another currency, as after a change of the daemon's first one, it is as if it were the first price.
    /// - Returns: The conditions that begin to hold at this price, in the order above, below, change.
    mutating func take(_ price: Price, in currency: String) -> [PriceCondition.Kind] {
        if let known = self.currency, known != currency { self = ConditionWatch(condition) }
        self.currency = currency
        return watched.indices.compactMap { index in
            watched[index].evaluator.see(AlertReading(at: 0, price)) == nil ? nil : watched[index].kind
        }
    }
}
