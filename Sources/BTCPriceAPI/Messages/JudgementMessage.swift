import BTCPriceCore
import FoundationEssentials
import Varlink

extension Consensus {
    /// The consensus as the interface's `Consensus`.
    var json: JSONObject {
        [
            "sources": .array(sources.map { .string($0) }),
            "outliers": .array(outliers.map { .string($0) }),
            "spread": .string(spread.description),
        ]
    }

    init(json: JSONObject) throws(MessageFieldError) {
        self.init(
            sources: try json.texts("sources"), outliers: try json.texts("outliers"), spread: try json.decimal("spread")
        )
    }
}

extension Conversion {
    /// The conversion as the interface's `Conversion`.
    var json: JSONObject {
        [
            "value": .string(value.text),
            "rate": .string(rate.text),
            "sources": .array(sources.map { .string($0) }),
            "measuredBoottime": .integer(measuredBoottime),
        ]
    }

    init(json: JSONObject) throws(MessageFieldError) {
        self.init(
            value: try json.decimal("value"), rate: try json.decimal("rate"), sources: try json.texts("sources"),
            measuredBoottime: try json.required("measuredBoottime", \.millisecondsValue))
    }
}

extension TetherRate {
    /// The rate as the interface's `TetherRate`.
    var json: JSONObject {
        [
            "value": .string(value.text),
            "sources": .array(sources.map { .string($0) }),
            "measuredBoottime": .integer(measuredBoottime),
            "offPeg": .bool(isOffPeg),
        ]
    }

    init(json: JSONObject) throws(MessageFieldError) {
        self.init(
            value: try json.decimal("value"), sources: try json.texts("sources"),
            measuredBoottime: try json.required("measuredBoottime", \.millisecondsValue),
            isOffPeg: try json.required("offPeg", \.boolValue))
    }
}
