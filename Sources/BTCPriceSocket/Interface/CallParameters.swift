import BTCPriceCore

/// The parameters of all methods, as one table that writes and reads them.
struct CallParameters {
    var cachePolicy: CachePolicy?
    var currency: String?
    var currencies: [String]?
    var updates: WatchUpdates?
    /// Milliseconds.
    var maxAge: Int64?
    var source: String?
    var enabled: Bool?
    var step: Candle.Step?
    var from: Timestamp?
    var to: Timestamp?
    var limit: Int64?
    var time: Timestamp?
    var times: [Timestamp]?
    var fetch: Bool?
    var after: Timestamp?

    init() {}

    /// - Throws: ``JSONFieldError`` for a parameter that is not valid, or that the method does not have.
    init(_ call: Call) throws(JSONFieldError) {
        var fields = JSONFields(reading: call.parameters, isStrict: true)
        try visit(&fields, of: call.method)
        try fields.refuseOthers()
    }

    /// Those that have a value.
    func json(of method: String) -> JSONObject {
        var (parameters, fields) = (self, JSONFields(omitsAbsent: true))
        // Writing does not fail.
        do { try parameters.visit(&fields, of: method) } catch {}
        return fields.object
    }

    private mutating func visit(_ fields: inout JSONFields, of method: String) throws(JSONFieldError) {
        switch method {
        case PriceInterface.getPrice:
            try fields.optional("cachePolicy", &cachePolicy, .choice)
            try fields.optional("currency", &currency, .text)
            try fields.optional("maxAgeMs", &maxAge, .milliseconds.only { $0 >= 0 })
        case PriceInterface.watchPrice:
            try fields.optional("updates", &updates, .choice)
            try fields.optional("maxAgeMs", &maxAge, .milliseconds.only { $0 >= 0 })
            try fields.optional("currencies", &currencies, .texts.only { !$0.isEmpty })
        case PriceInterface.listSources, HistoryInterface.getDay:
            try fields.optional("currency", &currency, .text)
        case PriceInterface.retry: try fields.optional("source", &source, .text)
        case PriceInterface.setSource:
            try fields.optional("source", &source, .text)
            try fields.optional("enabled", &enabled, .flag)
        case HistoryInterface.getHistory:
            try fields.optional("step", &step, .choice)
            try fields.optional("currency", &currency, .text)
            try fields.optional("from", &from, .time)
            try fields.optional("to", &to, .time)
            try fields.optional("limit", &limit, .integer.only { $0 > 0 })
        case HistoryInterface.getEvents:
            try fields.optional("currency", &currency, .text)
            try fields.optional("from", &from, .time)
            try fields.optional("to", &to, .time)
            try fields.optional("after", &after, .time)
        case HistoryInterface.getPriceAt:
            try fields.optional("time", &time, .time)
            try fields.optional("currency", &currency, .text)
            try fields.optional("fetch", &fetch, .flag)
        case HistoryInterface.getPricesAt:
            try fields.optional(
                "times", &times, .list(.time).only { (1...HistoryCall.mostTimes).contains($0.count) })
            try fields.optional("currency", &currency, .text)
            try fields.optional("fetch", &fetch, .flag)
        default: break
        }
    }
}
