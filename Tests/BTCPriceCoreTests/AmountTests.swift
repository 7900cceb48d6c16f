import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct AmountTests {
    private func decimal(_ text: String) -> Price { Price(text) ?? 0 }

    @Test(
        arguments: [
            ("0.05btc", "0.05", Amount.Unit.btc), ("250usd", "250", .money(.usd)), ("100000sat", "100000", .sat),
            ("1sats", "1", .sat),
            ("$250.10", "250.1", .money(.usd)), ("3BTC", "3", .btc), ("007sat", "7", .sat), ("0usd", "0", .money(.usd)),
            ("999999999999999999sat", "999999999999999999", .sat), (".5btc", "0.5", .btc), ("1 btc", "1", .btc),
            ("1,000usd", "1000", .money(.usd)), ("$70,000", "70000", .money(.usd)),
            ("$70,000.50", "70000.5", .money(.usd)),
            ("$70k", "70000", .money(.usd)),
            ("50€", "50", .money(.eur)), ("70,000$", "70000", .money(.usd)),
            ("1.5kusd", "1500", .money(.usd)), ("2m usd", "2000000", .money(.usd)),
            ("₿0.05", "0.05", .btc), ("0.05 ₿", "0.05", .btc), ("0.05XBT", "0.05", .btc),
            ("$ 100", "100", .money(.usd)),
            ("100 $", "100", .money(.usd)), ("€50,000", "50000", .money(.eur)), ("10 000 sat", "10000", .sat),
            ("0.001 000 btc", "0.001", .btc), ("0.001 234 56 btc", "0.00123456", .btc),
            ("1000 000 sat", "1000000", .sat), ("1.250kwd", "1.25", .money(Currency(rawValue: "KWD") ?? .usd)),
            ("0.125usd", "0.125", .money(.usd)), ("70.500kusd", "70500", .money(.usd)),
            ("1.500keur", "1500", .money(.eur)), ("68901.225usd", "68901.225", .money(.usd)), ("1.500btc", "1.5", .btc),
            ("5krw", "5", .money(Currency(rawValue: "KRW") ?? .usd)),
            ("5 kkrw", "5000", .money(Currency(rawValue: "KRW") ?? .usd)),
            ("21,000,000btc", "21000000", .btc),
        ] as [(String, String, Amount.Unit)])
    func `an amount is read`(text: String, value: String, unit: Amount.Unit) {
        #expect(Amount(text) == Amount(decimal(value), unit))
    }

    @Test(arguments: [
        "", "btc", "$", "5", "5xyz", "-5usd", "+5usd", "1e5sat", "1,00usd", "1,0000usd", "1.btc", ".btc", "1.2.3btc",
        "70k", "70kk usd",
        "$5usd", "５btc",
        "0,125btc", "0,050 btc", "00,125usd", "1 234,500usd", "10 000,125eur", "1 00,500usd", "1.000.000usd",
        "1_000sat", "1'000usd", "1’000usd",
        "1\u{202F}000usd",
        "1\u{A0}000usd", "₿", "₿5usd",
        "1234567890123456789btc", "0.000000000000000001btc", "1btcbtc", "nanbtc",
    ])
    func `an invalid amount is refused`(text: String) {
        #expect(Amount(text) == nil)
    }

    @Test(arguments: [
        ("1,5btc", "write 1.5, not 1,5"), ("0,125btc", "write 0.125, not 0,125"),
        ("1 234,56 usd", "write 1234.56, not"),
        ("1\u{202F}234,56\u{A0}usd", "write 1234.56 without a narrow no-break space"),
        ("1_000_000 sat", "write 1000000 without an underscore"),
        ("1'234.50usd", "write 1234.50 without an apostrophe"),
        ("12,34,567 usd", "write 1234567, not"), ("1 234,500 usd", "write 1234.500, not"),
        ("$0,5", "write 0.5, not 0,5"),
        ("$70'000", "write 70000 without an apostrophe"), ("$70.000,50", "write 70000.50, not"),
        ("1.000.000usd", "write 1000000, not"), ("1,234,56usd", "a point begins the decimals"),
        ("0.5,3usd", "a point begins the decimals"), ("\u{2212}5usd", "below zero"),
        ("1.000,50usd", "write 1000.50, not 1.000,50"), ("70.000usd", "may mean 70000 or 70: write one of them"),
        ("$1.234", "may mean 1234 or 1.2340"), ("€70.500", "may mean 70500 or 70.5"),
        ("1.500sat", "may mean 1500 or 1.5"),
        ("1,500btc", "may mean 1500 or 1.5"), ("70.000", "may mean 70000 or 70"), ("1.5mbtc", "only for money"),
        ("1msat", "only for money"),
        ("5eth", "'eth' is not a unit (btc, sat, or the code of a currency"), ("-5btc", "below zero"),
        ("10%", "'%' is not a unit"),
        ("0", "no unit"), ("hello", "a number and a unit"), ("1234567890123456789btc", "more than 18 digits"),
    ])
    func `an invalid amount has its reason`(text: String, reason: String) {
        #expect(Amount(text) == nil)
        #expect(Amount.mistake(in: text).contains(reason), "\(Amount.mistake(in: text))")
    }

    @Test func `a number without a unit has the expected unit`() {
        #expect(Amount("70k", unit: .money(.usd)) == Amount(70_000, .money(.usd)))
        #expect(Amount("70,000", unit: .money(.usd)) == Amount(70_000, .money(.usd)))
        #expect(Amount("5btc", unit: .money(.usd)) == Amount(5, .btc))
    }

    @Test func `an amount is converted exactly`() {
        let price = decimal("68901.23")
        #expect(
            Amount(decimal("0.05"), .btc).converted(at: price)
                == ConvertedAmount(btc: decimal("0.05"), sat: 5_000_000, money: decimal("3445.0615")))
        #expect(
            Amount(1, .sat).converted(at: price)
                == ConvertedAmount(btc: decimal("0.00000001"), sat: 1, money: decimal("0.0006890123")))
        // 250 / 68901.23 is 0.003628382482...
        #expect(
            Amount(250, .money(.usd)).converted(at: price)
                == ConvertedAmount(btc: decimal("0.00362838"), sat: 362_838, money: 250))
    }

    @Test func `dollars buy whole satoshis, rounded half to even`() {
        let price: Price = 100_000_000
        for (usd, sat) in [("0.5", 0), ("1.5", 2), ("2.5", 2), ("2.51", 3), ("0", 0)] as [(String, Price)] {
            #expect(Amount(decimal(usd), .money(.usd)).converted(at: price).sat == sat, "\(usd)")
        }
    }

    /// A product with at most the eighteen digits of a price is exact: dividing it gives the original amount.
    @Test func `a conversion to dollars is exact`() {
        var generator = SeededGenerator.announced()
        for _ in 0..<2000 {
            let value = Price(Int64.random(in: 1...99_999_999, using: &generator), scale: 8)
            let price = Price(Int64.random(in: 1...9_999_999_999, using: &generator), scale: 2)
            let converted = Amount(value, .btc).converted(at: price)
            #expect(converted.sat == value * 100_000_000)
            #expect(converted.money.divided(by: price, places: 8) == value, "\(value) at \(price)")
            #expect(Price(converted.money.description) == converted.money, "\(converted.money) can be read again")
        }
    }
}
