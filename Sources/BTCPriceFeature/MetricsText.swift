package import BTCPriceCore

package enum MetricsText {
    /// The two formats that Prometheus reads.
    package enum Format: Sendable {
        /// Version 0.0.4 of the Prometheus text format.
        case prometheus
        /// OpenMetrics 1.0.
        case openMetrics

        package var contentType: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }
    }

    /// All families, in their order. Those without a sample are left out.
    package static func text(_ families: [MetricFamily], as format: Format) -> String {
        var text = ""
        for family in families where !family.samples.isEmpty {
            // The Prometheus text format has no info and no stateset. There, the name of a counter or an info family includes its suffix.
            let isKnown = format == .openMetrics || ![.info, .stateset].contains(family.kind)
            let suffix =
                switch family.kind {
                case .counter where format == .prometheus: "_total"
                case .info where format == .prometheus: "_info"
                default: ""
                }
            text += "# HELP \(family.name)\(suffix) \(escaped(family.help, format == .openMetrics))\n"
            text += "# TYPE \(family.name)\(suffix) \(isKnown ? family.kind.rawValue : "gauge")\n"
            for sample in family.samples {
                text += family.name + sample.suffix
                if !sample.labels.isEmpty {
                    let labels = sample.labels.map { "\($0.name)=\"\(escaped($0.value, true))\"" }
                    text += "{\(labels.joined(separator: ","))}"
                }
                text += " \(sample.value)\n"
            }
        }
        return format == .openMetrics ? text + "# EOF\n" : text
    }

    /// - Parameter quotes: Whether double quotes are escaped, too. In the help of the Prometheus text format, they are not.
    private static func escaped(_ text: String, _ quotes: Bool) -> String {
        var escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\n": "\\n"]
        if quotes { escapes["\""] = "\\\"" }
        return text.escaped(escapes)
    }
}
