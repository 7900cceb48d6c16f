import BTCPriceCore

/// Why a price is not current, for clients of the gateway.
enum StaleReason {
    /// Parts of ``FetchFailure/description`` and of the other reasons of a state, and what they mean. The first one that occurs counts.
    private static let kinds: [(parts: [String], meaning: String)] = [
        (["no tick has finished"], "no update has ended in time"),
        (["no tick since"], "no update has ended yet"),
        ([" contradict"], "the exchanges contradict each other"),
        (["that have to agree: "], "too few exchanges agree"),
        (["implausible: "], "no second exchange confirms the price"),
        (["invalid response: ", "stale response: "], "no exchange sent a usable price"),
    ]
    private static let refusals = [": refused: ", ", refused: ", ": rate limited", ", rate limited"]
    private static let silences = ["not reached: ", "no response ", "not available", " can be reached ("]

    /// - Parameters:
    ///   - failure: The daemon's text, which may name addresses; `nil` before the first tick.
    ///   - ticking: Whether the ticks run; `nil` if that is not known.
    static func text(of failure: String?, ticking: Ticking? = nil) -> String {
        guard let failure else { return "no update has ended yet" }
        if failure == PriceState.pausedFailure {
            return ticking == .idle
                ? "the updates are paused while no program reads the price" : "the updates are paused"
        }
        let contains = { (parts: [String]) in parts.contains(where: failure.contains) }
        if let kind = kinds.first(where: { contains($0.parts) }) { return kind.meaning }
        switch (contains(refusals), contains(silences)) {
        case (true, false): return "the exchanges refuse the requests"
        case (false, true): return "no exchange responded"
        case (true, true): return "the exchanges refuse the requests or do not respond"
        case (false, false): break
        }
        return contains(["as its limit allows"])
            ? "the exchanges' limits allow no request yet" : "the last update failed"
    }
}
