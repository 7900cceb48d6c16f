import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct PriceTests {
    private static let zeros = String(repeating: "0", count: 60)

    @Test(arguments: [
        ("75500.99", "75500.99"), ("66836.69000000", "66836.69"), ("1E-8", "0.00000001"), ("1e-08", "0.00000001"),
        ("-0.5", "-0.5"), ("0.\(zeros)1", "0.\(zeros)1"), ("1\(zeros)", "1\(zeros)"), ("1e60", "1\(zeros)"),
        ("1.\(zeros)", "1"), ("6.683669E4", "66836.69"), ("0e999", "0"), ("-0", "0"), ("00.10", "0.1"),
        ("999999999999999999", "999999999999999999"), ("-999999999999999999", "-999999999999999999"),
    ])
    func `numbers are read exactly`(text: String, expected: String) {
        #expect(Price(text)?.description == expected)
    }

    @Test(arguments: [
        ("1234567890123456789", "1234567890123456790"), ("0.1234567890123456785", "0.123456789012345678"),
        ("0.1234567890123456795", "0.12345678901234568"), ("0.12345678901234567850001", "0.123456789012345679"),
        ("9999999999999999995", "10000000000000000000"), ("-0.9999999999999999999", "-1"),
        ("12345678901234567890.123456789012345678", "12345678901234567900"),
        ("123456789012345678901234567890123456789", "123456789012345679000000000000000000000"),
        ("3.00000000000000000000000000000000000001", "3"), ("99999999.99999999999", "100000000"),
    ])
    func `more digits than fit are rounded half to even`(text: String, expected: String) {
        #expect(Price(text)?.description == expected)
    }

    @Test(arguments: [
        "", "-", ".", "12abc", "1.", ".5", "1e", "1e+", "0x10", "1,5", " 1", "1 ", "NaN", "inf", "--1", "1e9999",
        "1e400", "1e-400", "٣", "1.2.3", "+1",
    ])
    func `any other text is refused`(text: String) {
        #expect(Price(text) == nil)
    }

    @Test(arguments: [
        "0", "1", "-1", "10", "68901.23", "0.1", "-0.00000001", "12345678.12345678", "9007199254740993",
        "90071992547409.93", "1e30", "1e-30", "-1e19", "0.99999999999999999",
    ])
    func `the nearest double is found`(text: String) throws {
        let price = try #require(Price(text))
        #expect(price.double == Double(price.description))
    }

    /// A printed number is read as the same number, equal numbers are equal, and order and sum are those of the integers.
    @Test func `random numbers keep the rules of arithmetic`() throws {
        var random = SeededGenerator.announced()
        func number() -> Int64 {
            let shift = Int64.random(in: 0..<60, using: &random)
            return Int64.random(in: -999_999_999_999_999_999...999_999_999_999_999_999, using: &random) >> shift
        }
        for _ in 0..<5000 {
            let (one, other, scale) = (number(), number(), Int.random(in: -20...40, using: &random))
            let (left, right) = (Price(one, scale: scale), Price(other, scale: scale))
            #expect(Price(left.description) == left)
            #expect(left.double == Double(left.description))
            #expect((left < right) == (one < other))
            #expect((left == right) == (one == other))
            #expect(left + right == Price(one / 1, scale: scale) - -right)
            if abs(one) < 1 << 29, abs(other) < 1 << 29 {
                #expect(left + right == Price(one + other, scale: scale))
                #expect(left * right == Price(one * other, scale: 2 * scale))
                if other != 0 { #expect((left * right).divided(by: right, places: max(0, scale)) == left) }
            }
        }
    }

    @Test func `numbers far apart are compared and added`() {
        #expect(Price("1e60")! > Price("1e-60")!)
        #expect(Price("-1e60")! < Price("1e-60")!)
        #expect(Price("1e60")! + Price("1e-60")! == Price("1e60")!)
        #expect(Price("100000000.00000001")! > 100_000_000)
        #expect(Price("0.99999999")! < 1)
    }

    @Test(arguments: [
        ("1", "3", 4, "0.3333"), ("2", "3", 4, "0.6667"), ("1", "8", 2, "0.12"), ("3", "8", 2, "0.38"),
        ("-1", "8", 2, "-0.12"), ("5", "2", 0, "2"), ("250", "68901.23", 8, "0.00362838"),
        ("999999999999999999", "0.00000001", 8, "99999999999999999900000000"), ("0", "7", 8, "0"),
        ("1", "1e120", 8, "0"), ("999999999999999999", "1e30", 8, "0"),
        ("999999999999999999", "1e18", 0, "1"),
    ])
    func `a quotient is rounded half to even`(dividend: String, divisor: String, places: Int, expected: String) throws {
        let (dividend, divisor) = (try #require(Price(dividend)), try #require(Price(divisor)))
        #expect(dividend.divided(by: divisor, places: places).description == expected)
    }

    @Test(arguments: [
        ("2.345", 2, "2.34"), ("2.355", 2, "2.36"), ("2.3451", 2, "2.35"), ("-2.345", 2, "-2.34"), ("2.3", 2, "2.3"),
        ("0.0000001", 2, "0"), ("1e-40", 2, "0"), ("1e30", 2, "1\(zeros.prefix(30))"), ("1.123456785", 8, "1.12345678"),
        ("1.123456775", 8, "1.12345678"), ("1.1234567851", 8, "1.12345679"), ("68812.48", 8, "68812.48"),
        ("99999999.999999999", 8, "100000000"), ("0.3333333333333333333333333333333333333", 8, "0.33333333"),
        ("-1.123456775", 8, "-1.12345678"),
    ])
    func `a number is rounded half to even`(text: String, places: Int, expected: String) throws {
        #expect(try #require(Price(text)).rounded(toPlaces: places).description == expected)
    }

    @Test(arguments: [
        ("1", true), ("100000000", true), ("0.99999999", false), ("100000000.00000001", false), ("0", false),
        ("-5", false), ("0.999999999999999999", false), ("1.00000000000000001", true),
        ("99999999.9999999999", true), ("100000000.000000001", false), ("68901.23", true), ("850867136053.72", false),
    ])
    func `a price is accepted up to its bounds, to the last digit`(text: String, isTaken: Bool) throws {
        let loaded = LoadedPrice(.coinbase, try #require(Price(text)))
        if isTaken {
            try ResponseCheck.check(loaded, in: .usd, after: nil, at: Timestamp(milliseconds: 0), oldest: .seconds(60))
        } else {
            #expect(throws: PriceLoadingError.self) {
                try ResponseCheck.check(
                    loaded, in: .usd, after: nil, at: Timestamp(milliseconds: 0), oldest: .seconds(60))
            }
        }
    }

    @Test(arguments: [
        ("68901.23", 6_890_123_000_000), ("0", 0), ("0.000000004", 0), ("0.000000006", 1),
        ("1e10", 1_000_000_000_000_000_000),
        ("92233720368.54775807", nil), ("1e11", nil), ("1e28", nil), ("-1e128", nil), ("-2", -200_000_000),
    ]) func `a number is converted to units of a decimal place, unless there are too many`(text: String, units: Int64?)
        throws
    {
        #expect(try #require(Price(text)).units(ofPlaces: 8) == units)
    }
}
