/// One attempt to choose a price, for a tick or for clients that want a newer one. A pure value.
package struct Round: Sendable {
    let began: BootTime
    /// Whether a tick waits for it.
    var isTick = false
    /// The markets of the configured sources, in their order.
    let markets: [Market]
    /// How long a price is fresh, milliseconds.
    let freshFor: Int64
    /// The price in another currency, if there is a current one.
    var other: OtherCurrency?
    /// What the price in another currency and a reference rate imply, if both are known.
    var expected: ExpectedPrice?
    /// Whether the configuration allows to know it: another currency of another exchange, and reference rates.
    var allowsClaim = false
    /// Whether all sources are requested at once, because the last round had no time left for the response of another exchange.
    var isUrgent = false
    /// The markets that were requested and gave a price, the preferred one first.
    var answered: [Market] = []
    /// The sources that gave none, and why.
    var failures: [SourceFailure] = []
    /// The sources that could not be requested, and why.
    var skipped: [Skipped] = []
    /// Whether no more sources are requested: none responded, or no time is left.
    private(set) var isOver = false

    /// The markets that have not been requested yet.
    var remaining: [Market] {
        markets.filter { !answered.contains($0) && !hasFailed($0) }
    }

    /// Whether other sources than a market's are configured.
    func hasOthers(than market: Market) -> Bool { markets.contains { $0.venue != market.venue } }

    /// Whether a market was requested and gave no price.
    func hasFailed(_ market: Market) -> Bool { failures.contains { $0.source == market.venue } }

    /// Whether a source was requested too late to respond.
    var lacksTime: Bool { failures.contains { $0.error == .timedOut(after: nil) } }

    mutating func add(_ result: PollResult) {
        answered += result.answered
        failures += result.failures
        skipped = result.skipped
        if result.answered.isEmpty { isOver = true }
    }

    /// Ends the requests, because no time is left for them.
    mutating func end() { isOver = true }
}

/// The result of requests to several sources.
package struct PollResult: Sendable, Hashable {
    /// The markets that gave a price, the preferred one first. Their prices are in the book.
    package var answered: [Market] = []
    /// The sources that were requested before them, and why each gave none.
    package var failures: [SourceFailure] = []
    /// The sources that were not requested, and why.
    package var skipped: [Skipped] = []
}

/// What the selector needs before it can decide.
package struct Need: Sendable, Hashable {
    enum Purpose: Sendable, Hashable {
        case price
        /// Another market's price, to validate one.
        case witness
    }

    let purpose: Purpose
    /// The markets that can meet it, in the configured order.
    let markets: [Market]
    /// Whether a source with a cooldown is not requested. It is if the tick would have nothing to show otherwise, or a first price that
    /// nobody has confirmed.
    var keepsCooldowns = false
    /// If all of them are needed, the number that is enough without those in a cooldown; `nil` if the first one that gives a price is
    /// enough.
    var quorum: Int?
}
