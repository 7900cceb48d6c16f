/// Two sides with the same number of exchanges that contradict each other: nobody knows which one is right.
struct Dispute: Sendable {
    /// How long the last price of an exchange counts if it does not respond, in milliseconds.
    static let remembered: Int64 = 60_000

    /// The side whose price is shown: the last price of each of its exchanges.
    let shown: [MarketObservation]
    /// The other side.
    let others: [MarketObservation]

    /// The part of the dispute that counts at a time; `nil` if a side has no price that is new enough.
    func current(at boottime: Int64) -> Dispute? {
        let isNew = { (price: MarketObservation) in boottime - price.at <= Self.remembered }
        let current = Dispute(shown: shown.filter(isNew), others: others.filter(isNew))
        return current.shown.isEmpty || current.others.isEmpty ? nil : current
    }

    /// `bitstamp and coinbase (68850) contradict binance and kraken (70915)`
    var text: String {
        let sides = [shown, others].map { side in
            "\(side.map(\.market.venue).joined(separator: " and ")) (\(side.first.map { "\($0.value)" } ?? ""))"
        }
        return "\(sides[0]) contradict\(shown.count > 1 ? "" : "s") \(sides[1])"
    }
}
