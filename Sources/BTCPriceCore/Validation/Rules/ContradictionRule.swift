/// Which prices are outvoted by others.
enum ContradictionRule {
    /// The number of markets that outvote one.
    static let enough = 2

    /// Whether two exchanges among these prices agree with each other.
    static func hasPair(_ prices: [MarketObservation], _ book: ObservationBook) -> Bool {
        prices.indices.contains { first in
            prices[(first + 1)...].contains { other in
                other.exchange != prices[first].exchange
                    && ConfirmationRule.agreement(of: prices[first], with: other, book) != nil
            }
        }
    }

    /// The prices that count against another, one of each exchange. A single suspect does not count; two that agree do.
    static func counted(_ contradicting: [MarketObservation], _ book: ObservationBook) -> [MarketObservation] {
        let counted = contradicting.oneOf(\.exchange)
        return hasPair(counted, book) ? counted : counted.filter { !book.bases.suspects.contains($0.market) }
    }

    /// The largest group of these prices that agree with one of them; that one is first.
    static func camp(_ prices: [MarketObservation], _ book: ObservationBook) -> [MarketObservation] {
        let camps = prices.map { one in
            [one] + prices.filter { $0 != one && ConfirmationRule.agreement(of: one, with: $0, book) != nil }
        }
        return camps.max { $0.count < $1.count } ?? []
    }

    /// `<the move>, which coinbase (68850) contradicts`
    /// - Parameter others: The prices that contradict it; empty if the median does.
    static func describe(_ price: MarketObservation, by others: [MarketObservation], _ book: ObservationBook) -> String
    {
        let names = others.map { "\($0.market.venue) (\($0.value))" }.joined(separator: " and ")
        let contradiction =
            others.count > 1 ? "\(names) contradict" : "\(others.isEmpty ? "the median" : names) contradicts"
        return "\(JumpRule.describe(price, book)), which \(contradiction)"
    }
}
