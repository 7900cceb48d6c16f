/// What a decision says about one market.
package enum MarketVerdict: String, Sendable, Hashable, CaseIterable {
    /// Its price is shown, or counts in the median that is shown.
    case used
    /// Its price agrees with the one that is shown.
    case agrees
    /// Its price is too far from the one that is shown.
    case disagrees
    /// Its price is too far from the median.
    case outlier
    /// No longer given: its price has not changed for so long that it says nothing about the present.
    case unchanged
    /// Its price is older than the move that is judged.
    case old
    /// It gave no valid price.
    case failed
    /// It was not requested: it has a cooldown, or its limits allow no request.
    case skipped
    /// It was not needed.
    case notNeeded
}
