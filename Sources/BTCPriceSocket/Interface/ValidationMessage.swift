package import BTCPriceCore

extension Consensus: JSONMessage {
    package static var blank: Consensus { Consensus(sources: [], outliers: [], spread: .zero) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("sources", &sources, .texts)
        try fields.required("outliers", &outliers, .texts)
        try fields.required("spread", &spread, .decimal)
    }
}

extension Conversion: JSONMessage {
    package static var blank: Conversion { Conversion(value: .zero, rate: .zero, sources: [], measuredBoottime: .boot) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("value", &value, .decimal)
        try fields.required("rate", &rate, .decimal)
        try fields.required("sources", &sources, .texts)
        try fields.required("measuredBoottime", &measuredBoottime, .boottime)
    }
}

extension Derivation: JSONMessage {
    package static var blank: Derivation {
        Derivation(value: .zero, currency: "", rate: .zero, rateSource: "", rateDate: "")
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("value", &value, .price)
        try fields.required("currency", &currency, .text)
        try fields.required("rate", &rate, .decimal)
        try fields.required("rateSource", &rateSource, .text)
        try fields.required("rateDate", &rateDate, .text)
    }
}

extension Uncertainty: JSONMessage {
    package static var blank: Uncertainty { Uncertainty(plusMinus: .zero, markets: 0) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("plusMinus", &plusMinus, .decimal.only { !$0.isNegative })
        try fields.required("markets", &markets, .integer.only { $0 >= 0 })
    }
}

extension PegRate: JSONMessage {
    package static var blank: PegRate { PegRate(value: .zero, sources: [], measuredBoottime: .boot, isOffPeg: false) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("value", &value, .decimal)
        try fields.required("sources", &sources, .texts)
        try fields.required("measuredBoottime", &measuredBoottime, .boottime)
        try fields.required("offPeg", &isOffPeg, .flag)
    }
}
