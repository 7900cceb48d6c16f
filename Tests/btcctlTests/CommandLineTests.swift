import BTCPriceCore
import BTCPriceFeature
import CommandLine
import Testing

@testable import btcctl

/// What is read from the options that several commands share. The whole command lines are in 052-forms.
@Suite struct CommandLineTests {
    private func line(_ text: String) throws -> ParsedLine {
        let request = try BTCCtl.program.read(text.split(separator: " ").map(String.init))
        guard case .run(let line) = request else { throw UsageError("no command line") }
        return line
    }

    @Test(arguments: [
        ("curent", "current"), ("currnet", "current"), ("CURRENT", "current"), ("price", "current"), ("get", "current"),
        ("wtach", "watch"), ("souces", "sources"), ("stop", "pause"), ("stat", "status"), ("curr", "current"),
        ("dance", nil), ("x", nil),
    ])
    func `a mistyped command gets a suggestion`(word: String, meant: String?) {
        let advice = meant.map { "Did you mean '\($0)'? " } ?? ""
        #expect(throws: UsageError("no command '\(word)'. \(advice)See 'btcctl --help'.")) { try line(word) }
    }

    @Test func `options become the price that is wanted, and its form`() throws {
        #expect(
            try line("current --socket /x --max-age 1.5 --refresh -c €").asking()
                == AskingOptions(
                    daemon: DaemonAddress(socket: "/x"), policy: .remoteFirst, maxAge: .milliseconds(1500),
                    currency: "EUR"))
        #expect(
            try line("--format {price} watch --utc --iso").output()
                == PriceOutput(
                    form: .format(try FormatTemplate("{price}")),
                    timestamps: TimestampFormatter(isUTC: true, isISO: true)))
        #expect(try line("watch --bar=waybar").output() == PriceOutput(form: .bar(.waybar)))
        #expect(
            try line("wait --below 60000.5 --change 2.5% --above 70k").condition()
                == PriceCondition(
                    above: 70000, below: Price("60000.5") ?? 0, change: .percent(Price("2.5") ?? 0)))
        #expect(
            try line("wait --confirmed --max-uncertainty 0.5%").requirements(.usual)
                == PriceRequirements(trust: .confirmed, maxUncertainty: Price("0.5")))
        #expect(try line("wait --unconfirmed").requirements(.usual) == PriceRequirements(trust: .all))
        #expect(try line("wait --change 500").condition() == PriceCondition(change: .amount(500)))
    }

    /// The ways in which people write `70000.5` or paste it.
    private static let notations: [(name: String, group: String, point: String)] = [
        ("plain", "", "."), ("English", ",", "."), ("German", ".", ","), ("French", "\u{202F}", ","),
        ("Swiss", "'", "."),
        ("code", "_", "."),
    ]

    private static let money = [
        "5", "50", "250", "999", "1000", "1500", "9999", "70000", "100000", "125000", "1000000", "21000000", "0.50",
        "0.99",
        "12.34", "999.99", "1000.50", "70000.50", "125000.25", "1234567.89",
    ]
    private static let bitcoin = [
        "1", "2", "21", "100", "0.1", "0.5", "1.5", "0.05", "0.01", "0.25", "0.125", "0.001", "1.234", "2.500",
        "21.125",
        "0.0005", "0.00025", "0.12345", "0.00000001", "3.14159265",
    ]

    private static func written(_ number: String, _ group: String, _ point: String) -> String {
        let parts = number.split(separator: ".")
        let digits = Array(parts[0])
        let whole = digits.indices.map { index in
            (index > 0 && (digits.count - index) % 3 == 0 ? group : "") + String(digits[index])
        }.joined()
        return whole + (parts.count > 1 ? point + parts[1] : "")
    }

    @Test func `forty amounts in six notations are read as they were meant, or refused with advice`() throws {
        var (read, refused) = (0, 0)
        for (unit, numbers) in [("usd", Self.money), ("btc", Self.bitcoin)] {
            for (number, notation) in numbers.flatMap({ number in Self.notations.map { (number, $0) } }) {
                let (text, value) = (Self.written(number, notation.group, notation.point), try #require(Price(number)))
                var doors: [() throws -> Price?] = [{ try Convert.read([text + unit], in: nil).0.first?.value }]
                if unit == "usd" {
                    doors.append { try self.line("wait --above \(text)").condition().above }
                    doors.append { try self.line("wait --change \(text)").condition().changeInMoney }
                }
                for door in doors {
                    do {
                        let found = try door()
                        #expect(
                            found == value, "\(notation.name): \(text)\(unit) was read as \(String(describing: found))")
                        read += 1
                    } catch let error as UsageError {
                        #expect(
                            error.message.contains("write ") || error.message.contains("commas only group"),
                            "\(error.message)")
                        refused += 1
                    }
                }
            }
        }
        // Of the plain and the English ones all are read, and of the others those without a separator.
        #expect((read, refused) == (280, 200), "\(read) read, \(refused) refused")
    }

    @Test func `amounts are read with their units, and a currency alone is wanted`() throws {
        let read = { (text: String) in try Convert.read(text.split(separator: " ").map(String.init), in: nil) }
        #expect(try read("70k eur") == ([GivenAmount(value: 70_000, unit: .money(.eur))], nil))
        #expect(
            try read("7sat $3") == (
                [GivenAmount(value: 7, unit: .sat), GivenAmount(value: 3, unit: .money(.usd))], nil
            ))
        #expect(try read("eur usd") == ([GivenAmount(value: 1, unit: .money(.eur))], "USD"))
        // Without a unit, an amount is in the currency of the daemon.
        #expect(GivenAmount(value: 2).amount(in: .eur) == Amount(2, .money(.eur)))
        for text in ["5", "1xyz", "-1btc", "-5m"] { #expect(throws: UsageError.self) { try read(text) } }
    }

    @Test(arguments: [
        ("30", 30_000), ("0.2", 200), (".5h", 1_800_000), ("5min", 300_000), ("1h30m", 5_400_000),
        ("1d2h3s", 93_603_000), ("1.", 1000),
    ])
    func `a duration is read as people write it`(text: String, milliseconds: Int64) throws {
        #expect(try duration(text) == .milliseconds(milliseconds))
    }

    @Test(arguments: ["", "-1", "abc", "1mo", "1h30", "1e99", "nan", "5x", ".", "1.2.3", "5 m", "99999999999"])
    func `no other duration is`(text: String) {
        #expect(throws: UsageError.self) { try duration(text) }
    }

    @Test(arguments: [
        "current -c USD,EUR", "current --refresh --no-cache", "current --json --raw", "current --bar waybar --json",
        "current --bar bar", "current --format {nothing}", "watch --color blue", "chart --day-zone mars",
        "wait --above -3", "wait --above 0", "wait --above 70,00", "wait --above 3btc", "wait --change 2%%",
        "wait --change %", "wait --confirmed --unconfirmed",
    ])
    func `options that are not valid are refused`(text: String) {
        #expect(throws: UsageError.self) {
            let line = try line(text)
            _ = (try line.asking(), try line.output(), try line.condition(), try line.color(), try line.dayZone())
        }
    }

    @Test func `control characters are escaped for a terminal`() {
        #expect("plain Ä€ 🙂".printable == "plain Ä€ 🙂")
        #expect("\u{1B}]0;x\u{7}\n".printable == "\\u{1b}]0;x\\u{7}\\u{a}")
        for scalar: Unicode.Scalar in ["\u{202E}", "\u{2066}", "\u{9B}", "\u{85}", "\u{200F}", "\u{2028}", "\u{7F}"] {
            let text = "a\(Character(scalar))b"
            #expect(text.printable == "a\\u{\(String(scalar.value, radix: 16))}b")
        }
    }
}

extension PriceCondition {
    /// The amount of ``change``, if it is one of money.
    fileprivate var changeInMoney: Price? {
        if case .amount(let amount) = change { amount } else { nil }
    }
}
