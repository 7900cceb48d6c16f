/// The error of a fetch in which no source gave a price.
package struct FetchFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The sources that were requested, in their order, and why each gave none.
    package let failures: [SourceFailure]
    /// The sources that were not requested, and why.
    let skipped: [Skipped]
    /// Why no price could be derived instead; `nil` if that was not tried.
    var notDerived: String?
    /// Why nothing is known about any source: the caller gave up, or the ticks are paused.
    private var reason: String?

    package init(failures: [SourceFailure] = [], skipped: [Skipped] = []) {
        self.failures = failures
        self.skipped = skipped
    }

    private init(_ reason: String) {
        self.init()
        self.reason = reason
    }

    package static let cancelled = FetchFailure("cancelled")

    /// The currency is not kept, or not any more.
    package static let notKept = FetchFailure("the price is not kept in this currency")

    package var isNotKept: Bool { reason == Self.notKept.reason }

    package static let paused = FetchFailure(PriceState.pausedFailure)

    package var isCancelled: Bool { reason == Self.cancelled.reason }

    /// One line: `binance: no response within 800 ms; coinbase: not reached: …`; only the cause if all sources failed in the same way.
    package var description: String {
        if let reason { return reason }
        if let commonCause, notDerived == nil {
            return "No exchange can be reached (\(commonCause)): is the network up?"
        }
        let reasons =
            failures.map { "\($0.source): \($0.error)" } + skipped.map(\.description) + [notDerived].compactMap(\.self)
        return reasons.isEmpty ? "no source can be requested" : reasons.joined(separator: "; ")
    }

    /// Why none of several sources could be reached: now, when its cooldown began, or the last time if it waits only for its limits.
    /// `nil` if they have failed in other ways, or for different reasons.
    private var commonCause: String? {
        // One that did not fail the last time may be reachable.
        if failures.isEmpty, skipped.contains(where: { $0.reason == .limit && $0.lastFailure == nil }) { return nil }
        let resting = skipped.compactMap { skipped -> PriceLoadingError? in
            if case .cooldown(let cooldown) = skipped.reason { cooldown.reason } else { skipped.lastFailure }
        }
        let causes = (failures.map(\.error) + resting).map { error -> String? in
            switch error {
            case .unreachable(_, cause: .name): "names cannot be resolved"
            case .unreachable(let reason, _): reason
            default: nil
            }
        }
        return causes.count > 1 && Set(causes).count == 1 ? causes[0] : nil
    }
}
