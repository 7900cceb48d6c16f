package import BTCPriceCore

extension SourceReport: JSONMessage {
    package static var blank: SourceReport {
        SourceReport(name: "", order: 0, market: "", address: "", use: .untried)
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("name", &name, .text)
        try fields.required("order", &order, .integer)
        try fields.required("market", &market, .text)
        try fields.required("url", &address, .text)
        try fields.required("use", &use, .choice)
        fields.derived("letter", .string(String(letter)))
        try fields.optional("lastSuccess", &lastSuccess, .time)
        try fields.optional("lastFailure", &lastFailure, .message)
        try fields.optional("latency", &latency, .message)
        try fields.optional("restsUntil", &cooldownUntil, .time)
        try fields.required("requests", &requests, .integer)
        try fields.required("limits", &limits, .list(.message))
        try fields.optional("lastPrice", &lastPrice, .price)
        try fields.added("elsewhere", &isElsewhere, .flag)
        try fields.optional("verdict", &verdict, .choice)
        try fields.optional("way", &way, .choice)
        try fields.optional("bodyBytes", &bodyBytes, .integer)
        var (low, high) = (claim?.low, claim?.high)
        var (isMember, contradictedBy) = (claim?.isMember, claim?.contradictedBy)
        try fields.optional("low", &low, .decimal)
        try fields.optional("high", &high, .decimal)
        try fields.optional("inVote", &isMember, .flag)
        try fields.optional("contradictedBy", &contradictedBy, .texts)
        if let low, let high {
            claim = MarketClaim(
                low: low, high: high, isMember: isMember ?? false, contradictedBy: contradictedBy ?? [])
        }
        try fields.optional("clockDifferenceMs", &clockDifference, .integer)
        try fields.optional("bid", &bid, .price)
        try fields.optional("ask", &ask, .price)
        try fields.added("switchedOff", &isOff, .flag)
    }
}

extension SourceReport.Failure: JSONMessage {
    package static var blank: SourceReport.Failure {
        SourceReport.Failure(at: Timestamp(milliseconds: 0), kind: "", reason: "")
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("at", &at, .time)
        try fields.required("kind", &kind, .text)
        try fields.required("reason", &reason, .text)
        try fields.optional("cause", &cause, .choice)
    }
}

extension SourceReport.Latency: JSONMessage {
    package static var blank: SourceReport.Latency { SourceReport.Latency(p50: 0, p90: 0, p99: 0, answers: 0) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("p50Ms", &p50, .integer)
        try fields.required("p90Ms", &p90, .integer)
        try fields.required("p99Ms", &p99, .integer)
        try fields.required("answers", &answers, .integer)
    }
}

extension SourceReport.Limit: JSONMessage {
    package static var blank: SourceReport.Limit { SourceReport.Limit(requests: 0, period: 0, made: 0) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("requests", &requests, .integer)
        try fields.required("periodMs", &period, .milliseconds)
        try fields.required("made", &made, .integer)
    }
}

/// The reply to `SetSource`.
package struct SetSourceMessage: Sendable, JSONMessage {
    /// The currencies whose sources are all switched off, ISO 4217.
    package var withoutSource: [String] = []

    package static var blank: SetSourceMessage { SetSourceMessage() }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("withoutSource", &withoutSource, .texts)
    }
}

/// The reply to `Retry`.
package struct RetryMessage: Sendable, JSONMessage {
    /// A source that stays in cooldown.
    package struct Kept: Sendable, JSONMessage {
        package var source = ""
        /// When the cooldown ends.
        package var until = Timestamp(milliseconds: 0)
        /// The reason, in one line.
        package var reason = ""

        package static var blank: Kept { Kept() }

        package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
            try fields.required("source", &source, .text)
            try fields.required("until", &until, .time)
            try fields.required("reason", &reason, .text)
        }
    }

    /// The sources that get requests again.
    package var retried: [String] = []
    /// The sources whose cooldown an exchange has demanded.
    package var kept: [Kept] = []

    package static var blank: RetryMessage { RetryMessage() }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("retried", &retried, .texts)
        try fields.required("kept", &kept, .list(.message))
    }
}
