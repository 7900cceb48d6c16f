import BTCPriceCore
import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct MetricsMessageTests {
    private let family = MetricFamily(
        "btcpriced_ticks", .counter, "Ticks.",
        samples: [.init(suffix: "_total", labels: [.init("quote", "USD")], value: "17")])

    @Test func `a family is read back unchanged`() throws {
        #expect(try MetricFamily(json: family.json.value) == family)
    }

    @Test(arguments: [("name", "a b"), ("name", ""), ("kind", "summary")])
    func `a name or kind that can't be printed is refused`(field: String, value: String) {
        var broken = family.json
        broken[field] = .string(value)
        #expect(throws: JSONFieldError(field: field)) { try MetricFamily(json: broken.value) }
    }

    @Test(arguments: [("suffix", "{}"), ("value", "1\nx 2"), ("value", "")])
    func `a sample that can't be printed is refused`(field: String, value: String) {
        let sample = MetricFamily.Sample(
            suffix: field == "suffix" ? value : "", value: field == "value" ? value : "1")
        let broken = MetricFamily("x", .gauge, "", samples: [sample])
        #expect(throws: JSONFieldError(field: field)) { try MetricFamily(json: broken.json.value) }
    }
}
