package import BTCPriceCore

extension PriceState {
    /// The environment variables of a command that a price starts. Every variable is set; without a value it is empty.
    /// - Parameters:
    ///   - model: Shows this state.
    ///   - previous: The value passed to the previous command, or from which a change is measured.
    ///   - condition: The condition that began to hold; `nil` for a change of any kind.
    package func variables(
        _ model: PriceViewModel, previous: Price?, _ direction: PriceDirection, condition: String?,
        at now: ObservationTime
    ) -> [(name: String, value: String)] {
        let age = age(at: now)?.age.wholeMilliseconds
        return [
            ("BTCCTL_VALUE", quote?.value.description ?? ""), ("BTCCTL_PRICE", quote == nil ? "" : model.price),
            ("BTCCTL_PREVIOUS_VALUE", previous?.description ?? ""), ("BTCCTL_CURRENCY", quote?.currency ?? ""),
            ("BTCCTL_TIME", quote == nil ? "" : model.timestamp),
            ("BTCCTL_TIMESTAMP", quote.map { "\($0.timestamp.milliseconds)" } ?? ""),
            ("BTCCTL_AGE_MS", age.map { "\($0)" } ?? ""), ("BTCCTL_SOURCE", quote?.source ?? ""),
            ("BTCCTL_MARKET", quote?.market ?? ""), ("BTCCTL_FRESHNESS", freshness.rawValue),
            ("BTCCTL_CONFIRMATION", confirmation?.rawValue ?? ""), ("BTCCTL_FAILURE", failure ?? ""),
            ("BTCCTL_WARNING", standing.warning ?? ""), ("BTCCTL_DIRECTION", direction.rawValue),
            ("BTCCTL_CONDITION", condition ?? ""),
        ]
    }
}
