import BTCPriceAPI
import BTCPriceCore
import Testing

@testable import BTCCtl

@Suite struct CommandLineTests {
    @Test(arguments: [
        ("curent", "current"), ("currnet", "current"), ("CURRENT", "current"), ("price", "current"), ("get", "current"),
        ("wtach", "watch"), ("souces", "sources"), ("stop", "pause"), ("stat", "status"), ("curr", "current"),
        ("dance", nil), ("x", nil), ("", nil),
    ])
    func `a mistyped command gets a suggestion`(word: String, meant: String?) {
        #expect(CommandLineRepair.meant(by: word) == meant)
    }

    @Test(arguments: [
        ("current --json", "current --json"), ("--json current", "current --json"),
        ("--socket /x --raw current --utc", "current --socket /x --raw --utc"), ("--help", "--help"), ("", ""),
        ("--generate-completion-script bash", "--generate-completion-script bash"), ("at -1h", "at 1h"),
        ("history --since -7d --json", "history --since 7d --json"), ("help at", "help at"),
        ("at -3mo 0.5btc", "at 3mo 0.5btc"), ("at --utc -c EUR -1y", "at --utc -c EUR 1y"),
    ])
    func `options may stand before the command`(given: String, expected: String) {
        let repaired = CommandLineRepair(given.split(separator: " ").map(String.init))
        #expect(repaired.arguments.joined(separator: " ") == expected)
        #expect(repaired.complaint == nil)
    }

    @Test(arguments: [
        ("help foo", "no command 'foo'."), ("help wtach", "no command 'wtach'. Did you mean 'watch'?"),
        ("convert -5btc", "'-5btc' is not an amount: it is below zero."),
        ("at 1d -5m", "'-5m' is not an amount: it is below zero."),
        ("current --max-age -5m", "--max-age: '-5m' is below zero."),
        ("wait --above -1", "--above: '-1' is below zero."),
    ])
    func `options that can't be combined are reported`(given: String, complaint: String) {
        #expect(CommandLineRepair(given.split(separator: " ").map(String.init)).complaint == complaint)
    }

    @Test func `control characters are escaped for a terminal`() {
        #expect("plain Ä€ 🙂".printable == "plain Ä€ 🙂")
        #expect("\u{1B}]0;x\u{7}\n".printable == "\\u{1b}]0;x\\u{7}\\u{a}")
        for scalar: Unicode.Scalar in ["\u{202E}", "\u{2066}", "\u{9B}", "\u{85}", "\u{200F}", "\u{2028}", "\u{7F}"] {
            let text = "a\(Character(scalar))b"
            #expect(text.printable == "a\\u{\(String(scalar.value, radix: 16))}b")
        }
    }

    @Test(arguments: [
        (PriceCondition.Trust.all, [true, true, true]), (.usual, [true, true, false]),
        (.confirmed, [false, true, false]),
    ])
    func `prices that a condition accepts`(trust: PriceCondition.Trust, expected: [Bool]) {
        var condition = PriceCondition()
        condition.trust = trust
        #expect([.single, .confirmed, .unconfirmed].map { condition.trusts($0) } == expected)
    }
}
