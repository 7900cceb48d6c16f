import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceCore

/// The quick ways to what a decimal is, held against the slow ones.
@Suite struct DecimalTests {
    /// Where this fails, FoundationEssentials keeps its decimals in another way: they are read by their text then, rightly and slowly.
    @Test func `the storage is what it was`() {
        #expect(DecimalParts.isLayoutKnown)
    }

    @Test(arguments: [
        "0", "1", "-1", "10", "100", "68900", "68901.23", "68901.20", "0.1", "-0.00000001", "12345678.12345678",
        "18446744073709551615",
        "18446744073709551616", "184467440737095516150", "99999999999999999999999999999999999999",
        "0.0000000000000000001",
        "0e-17", "0e9", "9007199254740993", "90071992547409.93", "1e30", "1e-30", "-1e19",
    ])
    func `text and double are those of the description`(text: String) throws {
        let value = try #require(Decimal(exactly: text))
        #expect(value.text == value.description)
        #expect(value.double == Double(value.description))
    }

    @Test func `so they are for any number`() throws {
        var random = SeededGenerator.announced()
        for _ in 0..<5000 {
            let digits = String(
                UInt64.random(in: 0 ... .max, using: &random) >> UInt64.random(in: 0..<64, using: &random))
            let text = "\(Bool.random(using: &random) ? "-" : "")\(digits)e\(Int.random(in: -25...25, using: &random))"
            let value = try #require(Decimal(exactly: text))
            let described = value.description
            guard value.text == described, value.double == Double(described) else {
                Issue.record("\(text): \(value.text) and \(value.double), not \(described)")
                return
            }
        }
    }

    @Test func `what is no number has no parts`() {
        #expect(DecimalParts(.nan) == nil)
        #expect(Decimal.nan.double.isNaN)
        #expect(Decimal.nan.text == Decimal.nan.description)
    }
}
