package import BTCPriceCore
package import Varlink

/// The interface's `State`: ``BTCPriceCore/PriceState`` with the daemon's instance. The only mapping between the two.
package struct StateMessage: Sendable, Hashable {
    /// Changes at every start of the daemon.
    package var instance: String
    package var state: PriceState
    /// The daemon's `CLOCK_BOOTTIME` when it made the reply, milliseconds; `nil` if it does not say it.
    package var boottime: Int64?

    /// - Parameters:
    ///   - instance: Changes at every start of the daemon.
    ///   - state: The state.
    ///   - boottime: `CLOCK_BOOTTIME`, milliseconds.
    package init(instance: String, state: PriceState, boottime: Int64? = nil) {
        self.instance = instance
        self.state = state
        self.boottime = boottime
    }

    /// The message as JSON, every field of the definition in its order, absent values as null.
    package var json: JSONObject {
        [
            "instance": .string(instance),
            "tick": .integer(state.tick),
            "freshness": .string(state.freshness.rawValue),
            "quote": state.quote.map { .object($0.json) } ?? .null,
            "observedBoottime": state.observedBoottime.map { .integer($0) } ?? .null,
            "confirmation": state.confirmation.map { .string($0.rawValue) } ?? .null,
            "failure": state.failure.map { .string($0) } ?? .null,
            "warning": state.warning.map { .string($0) } ?? .null,
            "consensus": state.consensus.map { .object($0.json) } ?? .null,
            "conversion": state.conversion.map { .object($0.json) } ?? .null,
            "uncertainty": state.uncertainty.map { .object($0.json) } ?? .null,
            "currency": .string(state.currency),
            "day": state.day.map { .object($0.json) } ?? .null,
            "derived": state.derivation.map { .object($0.json) } ?? .null,
            "ticking": .optional(state.ticking?.rawValue),
            "boottime": .optional(boottime),
        ]
    }

    /// The message as JSON, with the age of the price added: `ageMs`, which is null without a price or if its age is not known, and
    /// `ageIsEstimate`, which is null without a price.
    /// - Parameter now: The clocks of the machine on which the price was observed.
    package func json(at now: ObservationTime) -> JSONObject {
        var object = json
        let age = state.age(at: now)
        object["ageMs"] = age.map { .integer($0.age.wholeMilliseconds) } ?? .null
        object["ageIsEstimate"] = state.quote == nil ? .null : .bool(age?.isEstimate ?? true)
        return object
    }

    /// Reads the message. Unknown fields are ignored: newer daemons may send them.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        let quote: PriceQuote? =
            if let object = try json.optional("quote", \.objectValue) { try PriceQuote(json: object) } else { nil }
        // The price is more important than what is beside it: if one of the others can't be read, it is treated as absent.
        let consensus = json["consensus"].flatMap { try? Consensus(json: $0) }
        let conversion: Conversion? =
            if let object = try json.optional("conversion", \.objectValue) { try Conversion(json: object) } else { nil }
        let derivation: Derivation? =
            if let object = try json.optional("derived", \.objectValue) { try Derivation(json: object) } else { nil }
        let uncertainty = json["uncertainty"].flatMap { try? Uncertainty(json: $0) }
        let day = json["day"].flatMap { try? PriceDay(json: $0) }
        var state = PriceState(
            tick: try json.required("tick", \.integerValue),
            freshness: try json.choice("freshness", required: Freshness.self),
            quote: quote,
            observedBoottime: try json.optional("observedBoottime", \.millisecondsValue),
            confirmation: try json.choice("confirmation", optional: Confirmation.self),
            failure: try json.optional("failure", \.stringValue),
            warning: try json.optional("warning", \.stringValue), consensus: consensus, conversion: conversion,
            uncertainty: uncertainty,
            // Absent in messages of btc-priced 0.1.0, which keeps only dollars.
            currency: try json.optional("currency", \.stringValue) ?? Currency.usd.rawValue,
            day: day, derivation: derivation)
        state.ticking = json["ticking"]?.stringValue.flatMap(Ticking.init(rawValue:))
        self.init(
            instance: try json.required("instance", \.stringValue), state: state,
            boottime: json["boottime"]?.millisecondsValue)
    }
}

extension PriceQuote {
    /// The quote as the interface's `Quote`.
    var json: JSONObject {
        [
            "value": .string(value.description),
            "currency": .string(currency),
            "timestamp": .integer(timestamp.milliseconds),
            "source": .string(source),
            "market": .string(market),
            "via": via.map { .string($0) } ?? .null,
        ]
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            value: try json.price("value"),
            currency: try json.required("currency", \.stringValue),
            timestamp: try json.required("timestamp", \.timestampValue),
            source: try json.required("source", \.stringValue),
            market: try json.required("market", \.stringValue), via: try json.optional("via", \.stringValue))
    }
}
