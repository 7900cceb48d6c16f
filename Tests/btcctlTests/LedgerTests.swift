import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Testing

@testable import btcctl

@Suite struct LedgerTests {
    private static func ledger(_ words: String...) throws -> Ledger? {
        guard case .run(let line) = try BTCCtl.program.read(["history"] + words) else { return nil }
        return try Ledger(line)
    }

    private func line(_ ledger: Ledger?, _ close: Price, _ currency: String = "USD", notes: [String] = []) -> String? {
        ledger?.line(close, at: Timestamp(milliseconds: 86_399_000), currency, notes)
    }

    @Test func `a price has always the same number of digits, and the last second of its day`() throws {
        let hledger = try Self.ledger("--ledger", "hledger")
        // The time zone of the tests is UTC.
        #expect(line(hledger, Price(68_901_225, scale: 3)) == "P 1970-01-01 23:59:59 BTC 68901.22 USD")
        #expect(line(hledger, 68_901) == "P 1970-01-01 23:59:59 BTC 68901.00 USD")
        #expect(line(hledger, 10_345_678, "JPY") == "P 1970-01-01 23:59:59 BTC 10345678 JPY")
        #expect(
            line(hledger, 7, notes: ["38 of 60 minutes", "unconfirmed"])
                == "P 1970-01-01 23:59:59 BTC 7.00 USD  ; 38 of 60 minutes, unconfirmed")
        #expect(line(try Self.ledger("--ledger", "beancount"), 7) == "1970-01-01 price BTC 7.00 USD")
        #expect(
            line(try Self.ledger("--ledger", "hledger", "--sats"), Price(6_890_123, scale: 2))
                == "P 1970-01-01 23:59:59 sat 0.0006890123 USD")
        #expect(
            line(try Self.ledger("--ledger", "beancount", "--sats"), 100, "JPY")
                == "1970-01-01 price SAT 0.00000100 JPY")
        #expect(line(try Self.ledger("--ledger=hledger", "--commodity", "$"), 7) == "P 1970-01-01 23:59:59 BTC $7.00")
        #expect(
            line(try Self.ledger("--ledger=hledger", "--commodity", "Fr"), 7) == "P 1970-01-01 23:59:59 BTC 7.00 Fr")
    }

    @Test func `a candle ends with its step, and the file says what a point means`() throws {
        let ledger = try #require(try Self.ledger("--ledger", "hledger"))
        let text = HistoryText(currency: "USD", step: .hour, timestamps: TimestampFormatter())
        let candle = Candle(start: 7200, open: 1, high: 1, low: 1, close: 1)
        #expect(text.end(of: candle) == 10_800)
        #expect(text.ledger(candle, ledger) == "P 1970-01-01 02:59:59 BTC 1.00 USD")
        #expect(ledger.header("USD", .day).hasSuffix("\ndecimal-mark ."))
        #expect(try Self.ledger("--ledger", "beancount")?.header("USD", .day).contains("decimal") == false)
    }

    @Test(arguments: [
        ["--ledger", "gnucash"], ["--commodity", "$"], ["--sats"], ["--ledger", "beancount", "--commodity", "$"],
        ["--ledger", "beancount", "--commodity", "usd"], ["--ledger", "hledger", "--commodity", "A B"],
        ["--ledger", "hledger", "--commodity", ""], ["--ledger", "hledger", "--commodity", "U2"],
        ["--ledger", "hledger", "--commodity", "a\u{1b}b"],
    ])
    func `what a tool could not read is refused`(words: [String]) {
        #expect(throws: UsageError.self) {
            guard case .run(let line) = try BTCCtl.program.read(["history"] + words) else { return }
            _ = try Ledger(line)
        }
    }
}
