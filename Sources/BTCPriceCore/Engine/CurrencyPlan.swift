/// How the price of one currency is kept.
package struct CurrencyPlan: Sendable {
    package let currency: Currency
    /// The sources, the primary first.
    package let sources: [FetchLatestPrice]
    package let interval: Duration
    package let rules: SelectionRules
    /// When its price is derived from another currency's, which must be kept too.
    let derivation: DerivationPolicy
    /// What is believed before the first price.
    let belief: Belief
    let markets: [Market]
    /// The markets whose responses state the value of USDT.
    let marketsStatingPeg: Set<Market>

    package init(
        _ currency: Currency, _ sources: [FetchLatestPrice], interval: Duration,
        rules: SelectionRules = SelectionRules(), derivation: DerivationPolicy = .never, belief: Belief = Belief()
    ) {
        self.currency = currency
        self.sources = sources
        self.interval = interval
        self.rules = rules
        self.derivation = derivation
        self.belief = belief
        markets = sources.map(\.market)
        marketsStatingPeg = Set(
            sources.filter { $0.companions.contains { $0.pair == Market.pegPair } }.map(\.market))
    }

    /// The address of each market.
    var addresses: [Market: MarketAddress] {
        let addresses = sources.map { ($0.market, MarketAddress(host: $0.address, path: $0.path)) }
        return Dictionary(addresses) { first, _ in first }
    }

    /// Whether the sources are others, or at other addresses.
    func differs(from other: CurrencyPlan) -> Bool {
        !sources.elementsEqual(other.sources) { $0.isSame(as: $1) }
    }

    /// Has the sources use new connections from now on.
    /// - Parameter name: Only this source; `nil` for all.
    func discardConnections(of name: String?) {
        for source in sources where name == nil || source.venue.name == name { source.discardConnection() }
    }
}

extension SourceRegistry {
    /// The sources of all currencies: limits and bans belong to the venue.
    init(_ plans: [CurrencyPlan], at boottime: BootTime) {
        self.init(plans.flatMap { plan in plan.sources.map { ($0, plan.interval) } }, at: boottime)
    }
}
