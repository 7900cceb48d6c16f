/// Prices that contradict each other without a majority: nobody knows which is right.
struct Split: Sendable {
    /// The side whose price is shown: the last price of each of its exchanges.
    let shown: [MarketObservation]
    /// The other sides.
    let others: [MarketObservation]
    /// What contradicts the shown side if no market does.
    var rate: ExpectedPrice?
    /// Whether the others' prices are too old to count in a vote.
    var isOld = false

    /// The part that counts at a time; `nil` if a side has no price that is new enough.
    func current(at boottime: BootTime) -> Split? {
        let isNew = { (price: MarketObservation) in boottime - price.at <= Vote.Bounds.memory }
        let current = Split(shown: shown.filter(isNew), others: others.filter(isNew), rate: rate, isOld: isOld)
        return current.shown.isEmpty || current.others.isEmpty && rate == nil ? nil : current
    }

    /// The same for a vote, in which prices that are too old do not count.
    func standing(at boottime: BootTime) -> Split? { isOld ? nil : current(at: boottime) }

    /// `bitstamp and coinbase ($68,850.00) contradict binance ($70,915.00)`; each has its own price if they differ from each other.
    func text(_ currency: Currency) -> String {
        let against = rate.map { "\($0.text) contradict" } ?? "\(Self.names(others, currency)) contradict"
        return "\(against)\(rate == nil && others.count == 1 ? "s" : "") \(Self.names(shown, currency))"
    }

    private static func names(_ prices: [MarketObservation], _ currency: Currency) -> String {
        let (names, logs) = (prices.map(\.market.venue), prices.map(\.log))
        guard (logs.max() ?? 0) - (logs.min() ?? 0) <= 2 * Vote.Bounds.width else {
            return prices.map { "\($0.market.venue) (\(currency.money($0.value)))" }.listed
        }
        return "\(names.listed) (\(prices.first.map { currency.money($0.value) } ?? ""))"
    }
}
