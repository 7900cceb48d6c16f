/// Why a source gave no price.
package enum PriceLoadingError: Error, Sendable, Hashable {
    /// The caller cancelled the request. This is not a failure of the source: it is not counted and starts no fallback.
    case cancelled
    /// No complete response within this time; `nil` if the budget ended before the source's own timeout.
    case timedOut(after: Duration?)
    /// No connection, or a broken one: refusal, reset, TLS. `cause` is what on this side of the exchange may be at fault, if that is known.
    case unreachable(String, cause: Cause? = nil)
    /// A kept connection was closed before a byte of the response. Counted as ``unreachable(_:cause:)``. A repeated request counts again.
    case connectionClosed
    /// The exchange responded that it is temporarily unavailable. `retryAfter` is the time that it named, if it did.
    case unavailable(String, retryAfter: Duration? = nil)
    /// Too many requests. `retryAfter` is the pause that the exchange requested, if it did.
    case rateLimited(String, retryAfter: Duration?)
    /// The exchange refuses requests until something changes: key, region, protocol.
    case refused(String)
    /// A response that is not a price: wrong shape, wrong pair, not positive, absurd.
    case invalidData(String)
    /// A price that is too old, older than the last one, or from a cache.
    case staleData(String)
    /// A price that other sources contradict.
    case implausible(String)

    /// What of this machine, or of its way to the exchanges, may be at fault.
    package enum Cause: String, Sendable, Hashable, CaseIterable {
        /// The name can't be resolved.
        case name
        /// No connection could be made.
        case network
        /// The proxy can't be reached, or refuses the connection.
        case proxy
        /// The certificate is not trusted, or is for another host.
        case certificate
        /// The certificate is not valid now, by this machine's clock.
        case clock
    }

    package static let kinds = [
        "cancelled", "timed-out", "unreachable", "unavailable", "rate-limited", "refused", "invalid-data", "stale-data",
        "implausible",
    ]

    /// The kind of failure, as one word for the journal and for counting.
    package var kind: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut: "timed-out"
        case .unreachable, .connectionClosed: "unreachable"
        case .unavailable: "unavailable"
        case .rateLimited: "rate-limited"
        case .refused: "refused"
        case .invalidData: "invalid-data"
        case .staleData: "stale-data"
        case .implausible: "implausible"
        }
    }

    /// What on this side of the exchange may be at fault; `nil` if that is not known.
    package var cause: Cause? {
        if case .unreachable(_, let cause) = self { cause } else { nil }
    }

    /// The time after which the exchange wants the next request, if it named one.
    package var retryAfter: Duration? {
        switch self {
        case .rateLimited(_, let pause), .unavailable(_, let pause): pause
        default: nil
        }
    }

    /// What a failure means for the next request.
    package enum Category: Sendable, Hashable {
        /// The next request may succeed.
        case transient
        /// No requests until some time has passed.
        case rateLimited
        /// No requests until something changes.
        case refused
        /// The response is not a price, or not a correct one.
        case invalidData
        /// The response is an old one.
        case staleData
        /// Nothing is known about the source.
        case cancelled

        /// Whether the source is skipped until its cooldown ends, even if all others fail.
        package var isBinding: Bool { self == .rateLimited || self == .refused }
    }

    package var category: Category {
        switch self {
        case .cancelled: .cancelled
        case .timedOut, .unreachable, .connectionClosed, .unavailable: .transient
        case .rateLimited: .rateLimited
        case .refused: .refused
        case .invalidData, .implausible: .invalidData
        case .staleData: .staleData
        }
    }
}

extension PriceLoadingError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cancelled: "cancelled"
        case .timedOut(let after?): "no response within \(after.wholeMilliseconds) ms"
        case .timedOut(nil): "no response in the time that was left"
        case .unreachable(let what, _): "not reached: \(what)"
        case .connectionClosed: "not reached: the connection was closed before the response"
        case .unavailable(let what, nil): "not available: \(what)"
        case .unavailable(let what, let pause?): "not available for \(pause.components.seconds) s: \(what)"
        case .rateLimited(let what, nil): "rate limited: \(what)"
        case .rateLimited(let what, let pause?): "rate limited for \(pause.components.seconds) s: \(what)"
        case .refused(let what): "refused: \(what)"
        case .invalidData(let what): "invalid response: \(what)"
        case .staleData(let what): "stale response: \(what)"
        case .implausible(let what): "implausible: \(what)"
        }
    }
}
