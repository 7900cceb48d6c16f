package import BTCPriceCore
package import Varlink

extension MetricFamily {
    /// The family as the interface's `MetricFamily`.
    package var json: JSONObject {
        [
            "name": .string(name), "kind": .string(kind.rawValue), "help": .string(help),
            "samples": .array(
                samples.map { sample in
                    .object([
                        "suffix": .string(sample.suffix),
                        "labels": .array(
                            sample.labels.map { .object(["name": .string($0.name), "value": .string($0.value)]) }),
                        "value": .string(sample.value),
                    ])
                }),
        ]
    }

    /// Reads the message. Unknown fields are ignored: newer daemons may send them.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type, or if a name or a value can't be printed as a metric.
    package init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            try json.metricWord("name", orEmpty: false), try json.choice("kind", required: Kind.self),
            try json.required("help", \.stringValue),
            samples: try json.list("samples") { (sample) throws(JSONFieldError) in
                Sample(
                    suffix: try sample.metricWord("suffix", orEmpty: true),
                    labels: try sample.list("labels") { (label) throws(JSONFieldError) in
                        Label(
                            try label.metricWord("name", orEmpty: false), try label.required("value", \.stringValue))
                    },
                    value: try sample.required("value", \.metricValue))
            })
    }
}

extension JSONValue {
    /// A name of a metric or a label (Prometheus, Data model), or a part of one.
    fileprivate func metricWord(_ field: StaticString, orEmpty: Bool) throws(JSONFieldError) -> String {
        try required(field) { value in
            value.stringValue.flatMap { $0.utf8.allSatisfy(\.isWordByte) && (orEmpty || !$0.isEmpty) ? $0 : nil }
        }
    }

    /// A number, as text.
    fileprivate var metricValue: String? { stringValue.flatMap { Double($0) == nil ? nil : $0 } }
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
