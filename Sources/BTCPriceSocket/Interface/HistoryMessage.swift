package import BTCPriceCore

extension Candle: JSONMessage {
    package static var blank: Candle { Candle(start: 0, open: .zero, high: .zero, low: .zero, close: .zero) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("start", &start, .seconds)
        try fields.required("open", &open, .decimal)
        try fields.required("high", &high, .decimal)
        try fields.required("low", &low, .decimal)
        try fields.required("close", &close, .decimal)
        try fields.required("ticks", &ticks, .integer)
        try fields.required("fresh", &fresh, .integer)
        try fields.required("origin", &origin, .text)
        // A daemon of version 1.0.0 sends no seconds.
        var minutes = coveredMinutes
        try fields.optional("coveredMinutes", &minutes, .integer.only { (1...Step.day.minutes).contains($0) })
        try fields.optional("doubtful", &doubtful, .integer)
        try fields.optional("coveredSeconds", &covered, .integer)
        try fields.optional("single", &single, .integer)
        guard fields.isReading else { return }
        covered = covered ?? minutes.map { $0 * 60 }
        let checked = Candle(
            checkedStart: start, open: open, high: high, low: low, close: close, ticks: ticks, fresh: fresh,
            origin: origin, covered: covered, doubtful: doubtful, single: single, in: nil)
        guard checked != nil else { throw JSONFieldError(field: "candle") }
    }
}

extension JSONKind<Int64> {
    /// Seconds, which are sent as milliseconds.
    fileprivate static var seconds: JSONKind<Int64> {
        .init({ .integer($0 * 1000) }, { $0.millisecondsValue.map { $0 / 1000 } })
    }
}

extension PriceDay: JSONMessage {
    package static var blank: PriceDay {
        PriceDay(since: Timestamp(milliseconds: 0), open: .zero, high: .zero, low: .zero, close: .zero)
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        var change = change
        try fields.required("since", &since, .time)
        try fields.required("open", &open, .price)
        try fields.required("high", &high, .price)
        try fields.required("low", &low, .price)
        try fields.required("change", &change, .decimal)
        fields.derived("changePercent", .string(changePercent.description))
        try fields.required("backfilled", &isBackfilled, .flag)
        // A daemon of version 1.0.0 does not send these.
        if fields.isReading || until != nil { try fields.optional("until", &until, .time) }
        if fields.isReading || coveredMinutes != nil {
            try fields.optional("coveredMinutes", &coveredMinutes, .integer.only { (0...2000).contains($0) })
        }
        guard fields.isReading else { return }
        close = open + change
        guard Currency.pricesOfAny.contains(close) else { throw JSONFieldError(field: "change") }
    }
}

/// What is known of the price at a moment.
package struct PriceAt: Sendable, Hashable {
    /// The known price that is nearest to the moment.
    package let price: Price
    /// The shortest known candle of the moment.
    package let candle: Candle
    package let step: Candle.Step

    /// Whether the price at the moment may be another one of the candle's range: it is longer than a minute, or covers too little of one.
    package var isCoarse: Bool { step > .minute || !candle.isEnough(step) }

    /// Whether the price is coarse, in doubt or derived.
    package var isApproximate: Bool { isCoarse || candle.isInDoubt || candle.isDerived }

    /// Whether this is less than what is known of a whole candle of a step.
    package func isLess(than longest: Candle.Step) -> Bool { step > longest || longest <= .minute && isCoarse }

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
        guard let candle = try json.optional("candle", JSONKind<Candle>.message) else { return nil }
        price = try json.required("price", .price)
        self.candle = candle
        step = try json.required("step", JSONKind<Candle.Step>.choice)
    }
}

/// A moment in the reply to `GetPricesAt`.
package struct MomentMessage: Sendable, Hashable {
    package let time: Timestamp
    /// `nil` if nothing is known.
    package let known: PriceAt?
    /// Why its minute could not be requested; `nil` also if it was not tried.
    package let notFetched: String?

    package init(_ time: Timestamp, _ known: PriceAt?, notFetched: String? = nil) {
        self.time = time
        self.known = known
        self.notFetched = notFetched
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            try json.required("time", .time), try PriceAt(json: json),
            notFetched: try json.optional("notFetched", .text))
    }

    var json: JSONObject {
        var object: JSONObject = ["time": .integer(time.milliseconds)]
        object.append(known, notFetched: notFetched)
        return object
    }
}

extension JSONKind<MomentMessage> {
    static var moment: JSONKind<MomentMessage> {
        .init({ .object($0.json) }, { (json) throws(JSONFieldError) in try MomentMessage(json: json) })
    }
}

extension JSONObject {
    /// Adds what is known of a moment, and why its minute could not be requested.
    mutating func append(_ known: PriceAt?, notFetched reason: String?) {
        append("price", known.map { .string($0.price.description) } ?? .null)
        append("step", known.map { .string($0.step.rawValue) } ?? .null)
        append("candle", known.map { .object($0.candle.json) } ?? .null)
        append("notFetched", reason.map { .string($0) } ?? .null)
    }
}
