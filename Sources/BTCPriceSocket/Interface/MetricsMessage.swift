package import BTCPriceCore

extension MetricFamily: JSONMessage {
    package static var blank: MetricFamily { MetricFamily("", .gauge, "", samples: []) }

    /// The interface's `MetricFamily`. A name or a value that can't be printed as a metric is not valid.
    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("name", &name, .metricName)
        try fields.required("kind", &kind, .choice)
        try fields.required("help", &help, .text)
        try fields.required("samples", &samples, .list(.message))
    }
}

extension MetricFamily.Sample: JSONMessage {
    package static var blank: MetricFamily.Sample { MetricFamily.Sample(value: "") }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("suffix", &suffix, .metricSuffix)
        try fields.required("labels", &labels, .list(.message))
        try fields.required("value", &value, .metricValue)
    }
}

extension MetricFamily.Label: JSONMessage {
    package static var blank: MetricFamily.Label { MetricFamily.Label("", "") }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("name", &name, .metricName)
        try fields.required("value", &value, .text)
    }
}

extension JSONKind<String> {
    /// A part of the name of a metric (Prometheus, Data model).
    fileprivate static var metricSuffix: JSONKind<String> { text.only { $0.utf8.allSatisfy(\.isWordByte) } }

    /// The name of a metric or a label.
    fileprivate static var metricName: JSONKind<String> { metricSuffix.only { !$0.isEmpty } }

    /// A number, as text.
    fileprivate static var metricValue: JSONKind<String> { text.only { Double($0) != nil } }
}

extension UInt8 {
    fileprivate var isWordByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
