/// A source that is not requested this time, and why.
package struct Skipped: Sendable, Hashable, CustomStringConvertible {
    package enum Reason: Sendable, Hashable {
        case cooldown(SourceCooldown)
        case limit
    }

    package let source: String
    package let reason: Reason
    /// Why its last request failed; `nil` if it did not, or if that is not known.
    var lastFailure: PriceLoadingError?

    /// `binance: cooldown until 2026-11-21 14:32:10 UTC, rate limited: HTTP 418`
    package var description: String {
        switch reason {
        case .cooldown(let cooldown): "\(source): cooldown until \(cooldown.until.wall.utcText), \(cooldown.reason)"
        case .limit: "\(source): requested as often as its limit allows"
        }
    }
}
