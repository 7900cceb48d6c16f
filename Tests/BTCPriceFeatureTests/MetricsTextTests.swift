import BTCPriceCore
import Testing

@testable import BTCPriceFeature

@Suite struct MetricsTextTests {
    private let families = [
        MetricFamily(
            "x_price", .gauge, "A \"price\" \\ of\none.",
            samples: [.init(labels: [.init("quote", "U\"S\\D\n"), .init("base", "BTC")], value: "68901.23")]),
        MetricFamily("x_nothing", .gauge, "Left out."),
        MetricFamily("x_calls", .counter, "Calls.", samples: [.init(suffix: "_total", value: "7")]),
        MetricFamily(
            "x_build", .info, "Build.",
            samples: [.init(suffix: "_info", labels: [.init("version", "1")], value: "1")]),
        MetricFamily("x_state", .stateset, "State.", samples: [.init(labels: [.init("x_state", "a")], value: "1")]),
    ]

    @Test func `OpenMetrics`() {
        #expect(
            MetricsText.text(families, as: .openMetrics) == #"""
                # HELP x_price A \"price\" \\ of\none.
                # TYPE x_price gauge
                x_price{quote="U\"S\\D\n",base="BTC"} 68901.23
                # HELP x_calls Calls.
                # TYPE x_calls counter
                x_calls_total 7
                # HELP x_build Build.
                # TYPE x_build info
                x_build_info{version="1"} 1
                # HELP x_state State.
                # TYPE x_state stateset
                x_state{x_state="a"} 1
                # EOF

                """#)
    }

    @Test func `the Prometheus text format`() {
        #expect(
            MetricsText.text(families, as: .prometheus) == #"""
                # HELP x_price A "price" \\ of\none.
                # TYPE x_price gauge
                x_price{quote="U\"S\\D\n",base="BTC"} 68901.23
                # HELP x_calls_total Calls.
                # TYPE x_calls_total counter
                x_calls_total 7
                # HELP x_build_info Build.
                # TYPE x_build_info gauge
                x_build_info{version="1"} 1
                # HELP x_state State.
                # TYPE x_state gauge
                x_state{x_state="a"} 1

                """#)
    }

    @Test func `durations fall into their buckets`() {
        var histogram = DurationHistogram()
        for milliseconds in [0, 10, 11, 1000, 1001] { histogram.add(.milliseconds(milliseconds)) }
        #expect(histogram.counts == [2, 1, 0, 0, 0, 0, 0, 1, 1])
        #expect(histogram.counts.reduce(0, +) == 5)
        #expect(abs(histogram.sum - 2.022) < 1e-9)
    }
}
