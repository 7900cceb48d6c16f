package import BTCPriceCore

/// The interface's `State`: ``BTCPriceCore/PriceState`` with the daemon's instance. The only mapping between the two.
package struct StateMessage: Sendable, Hashable {
    /// Changes at every start of the daemon.
    package var instance: String
    package var state: PriceState
    /// When the daemon made the reply, by its own clock; `nil` if it does not say it.
    package var boottime: BootTime?

    package init(instance: String, state: PriceState, boottime: BootTime? = nil) {
        self.instance = instance
        self.state = state
        self.boottime = boottime
    }

    /// The message as JSON, with `ageMs`, null if it is not known, and `ageIsEstimate`. Both are null without a price.
    /// - Parameter now: The clocks of the machine on which the price was observed.
    package func json(at now: ObservationTime) -> JSONObject {
        var object = json
        let age = state.age(at: now)
        object["ageMs"] = age.map { .integer($0.age.wholeMilliseconds) } ?? .null
        object["ageIsEstimate"] = state.quote == nil ? .null : .bool(age?.isEstimate ?? true)
        return object
    }
}

extension StateMessage: JSONMessage {
    package static var blank: StateMessage { StateMessage(instance: "", state: .empty()) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        var (quote, price) = (state.price?.quote, state.price ?? ShownPrice(.blank))
        try fields.required("instance", &instance, .text)
        try fields.required("tick", &state.ticks.number, .integer)
        try fields.required("freshness", &state.ticks.freshness, .choice)
        try fields.optional("quote", &quote, .message)
        try fields.optional("observedBoottime", &price.observedBoottime, .boottime)
        try fields.optional("confirmation", &price.confirmation, .choice)
        try fields.optional("failure", &state.ticks.failure, .text)
        try fields.optional("warning", &state.standing.warning, .text)
        fields.lenient("consensus", &state.standing.consensus, .message)
        try fields.optional("conversion", &price.conversion, .message)
        fields.lenient("uncertainty", &state.standing.uncertainty, .message)
        // Absent in messages of btc-priced 0.1.0, which keeps only dollars.
        try fields.added("currency", &state.currency, .text)
        fields.lenient("day", &state.day, .message)
        try fields.optional("derived", &price.derivation, .message)
        fields.lenient("ticking", &state.ticks.ticking, .choice)
        fields.lenient("boottime", &boottime, .boottime)
        guard fields.isReading else { return }
        if let quote { price.quote = quote }
        state.price = quote == nil ? nil : price
    }
}

extension PriceQuote: JSONMessage {
    package static var blank: PriceQuote {
        PriceQuote(value: .zero, currency: "", timestamp: Timestamp(milliseconds: 0), source: "", market: "")
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("value", &value, .price)
        try fields.required("currency", &currency, .text)
        try fields.required("timestamp", &timestamp, .time)
        try fields.required("source", &source, .text)
        try fields.required("market", &market, .text)
        try fields.optional("via", &via, .text)
    }
}

/// The interface's `Currency`: a currency that the price is kept in.
package struct CurrencyMessage: Sendable, Hashable {
    /// ISO 4217
    package var currency: String
    package var price: StateMessage
    /// The time between two ticks, milliseconds.
    package var interval: Int64
    package var sources: [String]

    package init(currency: String, price: StateMessage, interval: Int64, sources: [String]) {
        self.currency = currency
        self.price = price
        self.interval = interval
        self.sources = sources
    }
}

extension CurrencyMessage: JSONMessage {
    package static var blank: CurrencyMessage {
        CurrencyMessage(currency: "", price: .blank, interval: 0, sources: [])
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("currency", &currency, .text)
        try fields.required("state", &price, .message)
        try fields.required("intervalMs", &interval, .interval)
        try fields.required("sources", &sources, .texts)
    }
}
