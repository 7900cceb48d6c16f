import BTCPriceCore
import FoundationEssentials

/// What `wait` waits for, and `watch --exec` runs a command at.
struct PriceCondition: Equatable {
    /// A change of the price.
    enum Change: Equatable {
        /// By so many dollars.
        case dollars(Decimal)
        /// By so many hundredths of the price at the beginning.
        case percent(Decimal)
    }

    /// Which of them holds.
    enum Kind: String, CaseIterable {
        case above
        case below
        case change
    }

    /// Which prices count at all.
    enum Trust: Equatable {
        /// Unconfirmed ones, too.
        case all
        /// All but the unconfirmed ones.
        case usual
        /// Those that a second source confirms in the same tick.
        case confirmed
    }

    var above: Decimal?
    var below: Decimal?
    var change: Change?
    var trust = Trust.usual

    /// How many are asked for.
    var count: Int { (above == nil ? 0 : 1) + (below == nil ? 0 : 1) + (change == nil ? 0 : 1) }

    /// Whether a price counts.
    func trusts(_ confirmation: Confirmation?) -> Bool {
        switch trust {
        case .all: true
        case .usual: confirmation != .unconfirmed
        case .confirmed: confirmation == .confirmed
        }
    }
}

/// The conditions beside the prices that come. Each is told once, when it begins to hold; a change is counted from the first price,
/// and then from the one at which it was told.
struct ConditionWatch {
    private let condition: PriceCondition
    private var base: Decimal?
    private var holding: Set<PriceCondition.Kind> = []

    init(_ condition: PriceCondition) {
        self.condition = condition
    }

    /// Takes a price.
    /// - Returns: The first condition that began to hold with it, in the order above, below, change.
    mutating func take(_ price: Decimal) -> PriceCondition.Kind? {
        let from = base ?? price
        if base == nil { base = price }
        var begun: PriceCondition.Kind?
        for kind in PriceCondition.Kind.allCases {
            guard holds(kind, price, from: from) else {
                holding.remove(kind)
                continue
            }
            if holding.insert(kind).inserted, begun == nil { begun = kind }
            // Counted anew from here.
            if kind == .change {
                base = price
                holding.remove(kind)
            }
        }
        return begun
    }

    private func holds(_ kind: PriceCondition.Kind, _ price: Decimal, from base: Decimal) -> Bool {
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
