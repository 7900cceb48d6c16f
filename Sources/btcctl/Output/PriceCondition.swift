import BTCPriceCore

/// What `wait` waits for, and when `watch --exec` runs its command.
struct PriceCondition: Equatable {
    /// The size of a price change, up or down.
    enum Change: Equatable {
        /// In the currency of the price.
        case dollars(Price)
        /// In percent of the base price.
        case percent(Price)
    }

    enum Kind: String, CaseIterable {
        case above
        case below
        case change
    }

    var above: Price?
    var below: Price?
    var change: Change?
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
    private var base: Price?
    private var holding: Set<PriceCondition.Kind> = []

    init(_ condition: PriceCondition) {
        self.condition = condition
    }

    /// Checks the next price.
    /// - Returns: The conditions that begin to hold at this price, in the order above, below, change.
    mutating func take(_ price: Price) -> [PriceCondition.Kind] {
        let from = base ?? price
        if base == nil { base = price }
        var begun: [PriceCondition.Kind] = []
        for kind in PriceCondition.Kind.allCases {
            guard holds(kind, price, from: from) else {
                holding.remove(kind)
                continue
            }
            if holding.insert(kind).inserted { begun.append(kind) }
            // The next change is measured from this price.
            if kind == .change {
                base = price
                holding.remove(kind)
            }
        }
        return begun
    }

    private func holds(_ kind: PriceCondition.Kind, _ price: Price, from base: Price) -> Bool {
        switch kind {
        case .above: condition.above.map { price > $0 } ?? false
        case .below: condition.below.map { price < $0 } ?? false
        case .change:
            switch condition.change {
            case .dollars(let amount): (price - base).magnitude >= amount
            case .percent(let share): (price - base).magnitude * 100 >= base * share
            case nil: false
            }
        }
    }
}
