package import BTCPriceCore
package import Varlink

extension SourceReport {
    /// The report as the interface's `Source`.
    package var json: JSONObject {
        [
            "name": .string(name),
            "order": .integer(order),
            "market": .string(market),
            "url": .string(address),
            "use": .string(use.rawValue),
            "letter": .string(String(use.letter)),
            "lastSuccess": .optional(lastSuccess?.milliseconds),
            "lastFailure": lastFailure.map { .object($0.json) } ?? .null,
            "latency": latency.map { .object($0.json) } ?? .null,
            "restsUntil": .optional(cooldownUntil?.milliseconds),
            "requests": .integer(requests),
            "limits": .array(limits.map { .object($0.json) }),
            "lastPrice": .optional(lastPrice?.description),
            "elsewhere": .bool(isElsewhere),
            "verdict": .optional(verdict?.rawValue),
            "way": .optional(way?.rawValue),
            "bodyBytes": .optional(bodyBytes),
            "low": .optional(claim?.low.description),
            "high": .optional(claim?.high.description),
            "inVote": claim.map { .bool($0.isMember) } ?? .null,
            "contradictedBy": claim.map { .array($0.contradictedBy.map { .string($0) }) } ?? .null,
        ]
    }

    /// Reads the message. Unknown fields are ignored: newer daemons may send them.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        let failure: Failure? =
            if let object = try json.optional("lastFailure", \.objectValue) { try Failure(json: object) } else { nil }
        let latency: Latency? =
            if let object = try json.optional("latency", \.objectValue) { try Latency(json: object) } else { nil }
        self.init(
            name: try json.required("name", \.stringValue),
            order: try json.required("order", \.integerValue),
            market: try json.required("market", \.stringValue),
            address: try json.required("url", \.stringValue),
            use: try json.choice("use", required: Use.self),
            verdict: try json.choice("verdict", optional: MarketVerdict.self),
            lastSuccess: try json.optional("lastSuccess", \.timestampValue),
            lastFailure: failure, latency: latency,
            cooldownUntil: try json.optional("restsUntil", \.timestampValue),
            requests: try json.required("requests", \.integerValue),
            limits: try json.list("limits") { (object) throws(JSONFieldError) in try Limit(json: object) })
        if try json.optional("lastPrice", \.rawString) != nil { lastPrice = try json.price("lastPrice") }
        way = try json.choice("way", optional: PriceWay.self)
        bodyBytes = try json.optional("bodyBytes", \.integerValue)
        isElsewhere = try json.optional("elsewhere", \.boolValue) ?? false
        let low = try json.optional("low", \.decimalValue)
        let high = try json.optional("high", \.decimalValue)
        let isMember = try json.optional("inVote", \.boolValue) ?? false
        let contradictedBy = try json.optional("contradictedBy", \.textsValue) ?? []
        if let low, let high {
            claim = MarketClaim(low: low, high: high, isMember: isMember, contradictedBy: contradictedBy)
        }
    }
}

extension SourceReport.Failure {
    fileprivate var json: JSONObject {
        ["at": .integer(at.milliseconds), "kind": .string(kind), "reason": .string(reason)]
    }

    fileprivate init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            at: try json.required("at", \.timestampValue), kind: try json.required("kind", \.stringValue),
            reason: try json.required("reason", \.stringValue))
    }
}

extension SourceReport.Latency {
    fileprivate var json: JSONObject {
        ["p50Ms": .integer(p50), "p90Ms": .integer(p90), "p99Ms": .integer(p99), "answers": .integer(answers)]
    }

    fileprivate init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            p50: try json.required("p50Ms", \.integerValue), p90: try json.required("p90Ms", \.integerValue),
            p99: try json.required("p99Ms", \.integerValue), answers: try json.required("answers", \.integerValue))
    }
}

extension SourceReport.Limit {
    fileprivate var json: JSONObject {
        ["requests": .integer(requests), "periodMs": .integer(period), "made": .integer(made)]
    }

    fileprivate init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            requests: try json.required("requests", \.integerValue),
            period: try json.required("periodMs", \.millisecondsValue), made: try json.required("made", \.integerValue))
    }
}
