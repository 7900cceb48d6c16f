package import BTCPriceCore
package import Varlink

extension Candle {
    /// The candle as the interface's `Candle`.
    package var json: JSONObject {
        [
            "start": .integer(start * 1000), "open": .string(open.description), "high": .string(high.description),
            "low": .string(low.description), "close": .string(close.description), "ticks": .integer(ticks),
            "fresh": .integer(fresh), "origin": .string(origin),
            "coveredMinutes": .optional(coveredMinutes), "doubtful": .optional(doubtful),
        ]
    }

    /// Reads the message.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        let candle = Candle(
            checkedStart: try json.required("start", \.millisecondsValue) / 1000, open: try json.decimal("open"),
            high: try json.decimal("high"), low: try json.decimal("low"), close: try json.decimal("close"),
            ticks: try json.required("ticks", \.integerValue), fresh: try json.required("fresh", \.integerValue),
            origin: try json.required("origin", \.stringValue),
            coveredMinutes: try json.optional("coveredMinutes", \.integerValue),
            doubtful: try json.optional("doubtful", \.integerValue), in: nil)
        guard let candle else { throw JSONFieldError(field: "candle") }
        self = candle
    }
}

extension PriceDay {
    /// The day as the interface's `Day`.
    package var json: JSONObject {
        [
            "since": .integer(since.milliseconds), "open": .string(open.description),
            "high": .string(high.description), "low": .string(low.description),
            "change": .string(change.description), "changePercent": .string(changePercent.description),
            "backfilled": .bool(isBackfilled),
        ]
    }

    /// Reads the message.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        let open = try json.price("open")
        let close = open + (try json.decimal("change"))
        guard Currency.pricesOfAny.contains(close) else { throw JSONFieldError(field: "change") }
        self.init(
            since: try json.required("since", \.timestampValue), open: open, high: try json.price("high"),
            low: try json.price("low"), close: close,
            isBackfilled: try json.required("backfilled", \.boolValue))
    }
}

/// The reply to `GetPriceAt`.
package struct PriceAt: Sendable, Hashable {
    /// The known price that is nearest to the moment.
    package let price: Price
    /// The shortest known candle of the moment.
    package let candle: Candle
    package let step: Candle.Step

    /// Whether the candle is longer than a minute.
    package var isCoarse: Bool { step > .minute }

    /// - Parameter second: The moment, Unix seconds.
    package init(_ candle: Candle, _ step: Candle.Step, at second: Int64) {
        price = second - candle.start < step.seconds - step.seconds / 2 ? candle.open : candle.close
        self.candle = candle
        self.step = step
    }

    /// Reads the reply.
    /// - Returns: `nil` if nothing is known.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    init?(json: JSONValue) throws(JSONFieldError) {
        guard let candle = try json.optional("candle", \.objectValue) else { return nil }
        price = try json.price("price")
        self.candle = try Candle(json: candle)
        step = try json.choice("step", required: Candle.Step.self)
    }
}
