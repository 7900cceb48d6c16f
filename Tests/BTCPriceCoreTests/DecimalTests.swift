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

    @Test(arguments: [
        "68901.23000000", "0.00000001", "0", "0.0", "000", "00.10", "68901", "999999999999999999",
        "0.99999999999999999",
        "", ".", ".5", "5.", "1.2.3", "-1", "+1", "1e5", " 1", "9999999999999999999",
    ])
    func `digits are read as the exact reading has them, or not at all`(text: String) {
        let quick = Decimal(digits: Array(text.utf8)[...])
        #expect(quick == nil || quick == Decimal(exactly: text))
        #expect(quick.map(\.text) == quick.map(\.description))
        #expect(quick?.description == quick.flatMap { _ in Decimal(exactly: text)?.description })
        let isPlain =
            text.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
            && text.utf8.count { $0 != 0x2E } <= 18
        #expect((quick != nil) == (isPlain && Decimal(exactly: text) != nil))
    }

    @Test(arguments: [
        ("1", true), ("100000000", true), ("0.99999999", false), ("100000000.00000001", false), ("0", false),
        ("-5", false),
        // Their nearest Double is the bound itself.
        ("0.99999999999999999999999", false), ("1.00000000000000000000001", true), ("99999999.99999999999999999", true),
        ("100000000.00000000000000001", false),
    ])
    func `a price is taken up to its bounds, to the last digit`(text: String, isTaken: Bool) throws {
        let loaded = LoadedPrice(value: try #require(Decimal(string: text)))
        if isTaken {
            try QuoteCheck.judge(loaded, after: nil, at: Timestamp(milliseconds: 0), oldest: .seconds(60))
        } else {
            #expect(throws: PriceLoadingError.self) {
                try QuoteCheck.judge(loaded, after: nil, at: Timestamp(milliseconds: 0), oldest: .seconds(60))
            }
        }
    }
}
