package import BTCPriceCore
package import Varlink

extension Consensus {
    /// The consensus as the interface's `Consensus`.
    var json: JSONObject {
        [
            "sources": .array(sources.map { .string($0) }),
            "outliers": .array(outliers.map { .string($0) }),
            "spread": .string(spread.description),
        ]
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            sources: try json.texts("sources"), outliers: try json.texts("outliers"), spread: try json.decimal("spread")
        )
    }
}

extension Conversion {
    /// The conversion as the interface's `Conversion`.
    var json: JSONObject {
        [
            "value": .string(value.description),
            "rate": .string(rate.description),
            "sources": .array(sources.map { .string($0) }),
            "measuredBoottime": .integer(measuredBoottime),
        ]
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            value: try json.decimal("value"), rate: try json.decimal("rate"), sources: try json.texts("sources"),
            measuredBoottime: try json.required("measuredBoottime", \.millisecondsValue))
    }
}

extension Derivation {
    /// The derivation as the interface's `Derived`.
    package var json: JSONObject {
        [
            "value": .string(value.description),
            "currency": .string(currency),
            "rate": .string(rate.description),
            "rateSource": .string(rateSource),
            "rateDate": .string(rateDate),
        ]
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            value: try json.price("value"), currency: try json.required("currency", \.stringValue),
            rate: try json.decimal("rate"), rateSource: try json.required("rateSource", \.stringValue),
            rateDate: try json.required("rateDate", \.stringValue))
    }
}

extension Uncertainty {
    /// The uncertainty as the interface's `Uncertainty`.
    var json: JSONObject { ["plusMinus": .string(plusMinus.description), "markets": .integer(markets)] }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            plusMinus: try json.decimal("plusMinus"), markets: try json.required("markets", \.integerValue))
    }
}

extension PegRate {
    /// The rate as the interface's `TetherRate`.
    var json: JSONObject {
        [
            "value": .string(value.description),
            "sources": .array(sources.map { .string($0) }),
            "measuredBoottime": .integer(measuredBoottime),
            "offPeg": .bool(isOffPeg),
        ]
    }

    init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            value: try json.decimal("value"), sources: try json.texts("sources"),
            measuredBoottime: try json.required("measuredBoottime", \.millisecondsValue),
            isOffPeg: try json.required("offPeg", \.boolValue))
    }
}
