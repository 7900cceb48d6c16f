import ArgumentParser
import BTCPriceCore
import BTCPriceFeature
import TestSupport
import Testing

@testable import BTCCtl

/// The two parsers of btcctl must agree: ArgumentParser parses what the fast parser accepts with the same result.
@Suite struct InvocationTests {
    private func whole(_ arguments: [String]) -> Invocation? {
        do {
            return try (try BTCCtlCommand.parseAsRoot(arguments) as? any InvocationCommand)?.invocation()
        } catch {
            return nil
        }
    }

    private static let words = [
        "current", "watch", "--json", "--raw", "--utc", "--iso", "--refresh", "--no-cache", "--max-age", "5",
        "--socket", "/x",
        "--format", "{price}", "{", "--bar", "waybar", "--help", "--version", "--", "-j", "--jso", "--socket=/x",
        "--bar=waybar", "--exec", "", "-", "help",
    ]

    /// The result of the fast parser.
    private static let hotWords = [
        ["--json"], ["--raw"], ["--utc"], ["--iso"], ["--refresh"], ["--no-cache"], ["--socket", "/x"],
        ["--format", "{price}"],
        ["--bar", "polybar"],
    ]

    /// Every command line of up to three words, and random longer ones.
    @Test func `both parsers agree on command lines`() {
        var taken = 0
        func hold(_ line: [String]) {
            guard let hot = Invocation(hotForm: line) else { return }
            taken += 1
            #expect(whole(line) == hot, "\(line)")
        }
        for verb in ["current", "watch"] {
            hold([verb])
            for first in Self.words {
                hold([verb, first])
                for second in Self.words { hold([verb, first, second]) }
            }
        }
        let every = taken
        var generator = SeededGenerator.announced()
        for _ in 0..<80 {
            var line = Self.hotWords.shuffled(using: &generator).prefix(Int.random(in: 2...4, using: &generator))
                .flatMap(\.self)
            if Bool.random(using: &generator) {
                let place = Int.random(in: 0...line.count, using: &generator)
                line.insert(Self.words.randomElement(using: &generator) ?? "", at: place)
            }
            hold(["current"] + line)
        }
        #expect(every > 40 && taken > every + 8, "\(every) and \(taken - every) were taken by the fast one")
    }

    @Test func `the fast parser accepts the most frequent command lines`() throws {
        let output = { (form: PriceOutput.Form) in PriceOutput(form: form) }
        #expect(Invocation(hotForm: ["current"]) == .current(CurrentOptions()))
        #expect(Invocation(hotForm: ["current", "--json"]) == .current(CurrentOptions(output: output(.json))))
        #expect(
            Invocation(hotForm: ["current", "--no-cache", "--raw", "--socket", "/x"])
                == .current(
                    CurrentOptions(asking: AskingOptions(socket: "/x", policy: .noCache), output: output(.raw))))
        #expect(
            Invocation(hotForm: ["watch", "--bar", "waybar"]) == .watch(WatchOptions(output: output(.bar(.waybar)))))
        #expect(
            Invocation(hotForm: ["watch", "--format", "{price}", "--utc", "--iso"])
                == .watch(
                    WatchOptions(
                        output: PriceOutput(
                            form: .format(try FormatTemplate("{price}")),
                            timestamps: ReaderTimestampFormatter(isUTC: true, isISO: true)))))
        #expect(Invocation(hotForm: []) == nil)
        #expect(Invocation(hotForm: ["current", "--refresh", "--no-cache"]) == nil)
        #expect(Invocation(hotForm: ["current", "--json", "--raw"]) == nil)
        #expect(Invocation(hotForm: ["current", "--format", "{x}"]) == nil)
        #expect(Invocation(hotForm: ["watch", "--refresh"]) == nil)
    }

    @Test func `ArgumentParser parses the other command lines`() {
        #expect(
            whole(["current", "--socket", "/x", "--max-age", "1.5", "--refresh"])
                == .current(
                    CurrentOptions(
                        asking: AskingOptions(socket: "/x", policy: .remoteFirst, maxAge: .milliseconds(1500)))))
        #expect(whole(["watch", "--socket=/x"]) == .watch(WatchOptions(socket: "/x")))
        #expect(
            whole(["watch", "--exec", "echo", "--change", "2.5%", "--above", "70000", "--color", "never"])
                == .watch(
                    WatchOptions(
                        color: .never, command: "echo",
                        condition: PriceCondition(above: 70000, change: .percent(Price("2.5") ?? 0)))))
        #expect(
            whole(["wait", "--below", "60000.5", "--change", "500", "--timeout", "3"])
                == .wait(
                    WaitOptions(
                        timeout: .seconds(3),
                        condition: PriceCondition(below: Price("60000.5") ?? 0, change: .dollars(500)))))
        // Without a unit, an amount is in the currency of the daemon.
        #expect(whole(["convert"]) == .convert(ConvertOptions(amounts: [GivenAmount(value: 1)])))
        #expect(
            whole(["convert", "70k", "eur"])
                == .convert(ConvertOptions(amounts: [GivenAmount(value: 70_000, unit: .money(.eur))])))
        #expect(GivenAmount(value: 2).amount(in: .eur) == Amount(2, .money(.eur)))
        #expect(
            whole(["convert", "eur", "usd"])
                == .convert(
                    ConvertOptions(
                        asking: AskingOptions(currency: "USD"), amounts: [GivenAmount(value: 1, unit: .money(.eur))])))
        #expect(
            whole(["convert", "7sat", "$3", "--raw"])
                == .convert(
                    ConvertOptions(
                        amounts: [GivenAmount(value: 7, unit: .sat), GivenAmount(value: 3, unit: .money(.usd))],
                        form: .raw)))
        #expect(
            whole(["current", "-c", "€"]) == .current(CurrentOptions(asking: AskingOptions(currency: "EUR"))))
        #expect(
            whole(["status", "--utc"])
                == .report(ReportOptions(question: .status, timestamps: ReaderTimestampFormatter(isUTC: true))))
    }

    @Test(arguments: [
        ("30", 30_000), ("0.2", 200), (".5h", 1_800_000), ("5min", 300_000), ("1h30m", 5_400_000),
        ("1d2h3s", 93_603_000),
    ])
    func `a duration is read as people write it`(text: String, milliseconds: Int64) throws {
        #expect(try seconds(text, option: "--timeout") == .milliseconds(milliseconds))
    }

    @Test(arguments: [
        "current --max-age -1", "current --max-age abc", "current --max-age 1mo", "current --max-age 1h30",
        "current -c USD,EUR", "chart --day-zone mars", "current --max-age 1e99", "current --max-age nan",
        "current --refresh --no-cache", "current --json --raw", "current --bar waybar --json", "current --bar bar",
        "current --format {nothing}", "current --exec x", "watch --above 3", "watch --exec x --json",
        "watch --color blue",
        "wait --above -3", "wait --above 0", "wait --above 70,00", "wait --above 3btc", "wait --timeout 5x",
        "wait --confirmed --unconfirmed", "wait --change 2%%", "wait --change %",
        "wait --bar waybar",
        "convert 5", "convert 1xyz", "convert -- -1btc", "convert 1btc --json --raw", "dance",
    ])
    func `an invalid command line is refused`(line: String) {
        #expect(whole(line.split(separator: " ").map(String.init)) == nil)
    }
}
