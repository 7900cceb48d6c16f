import ArgumentParser
import BTCPriceCore
import BTCPriceAPI

/// The whole command line for ArgumentParser.
struct BTCCtlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "btcctl",
        abstract: "Shows the price of a bitcoin that btc-priced keeps.",
        discussion: """
            Examples:
              btcctl current             Aug 25, 14:30 - $68,901.23
              btcctl watch               the same at every tick
              btcctl convert 0.05btc     0.05 BTC = 5,000,000 sat = $3,445.06
              btcctl chart               the last 24 hours
              btcctl sources             where the price comes from

            Exit status: 0 on success, 64 for a wrong command line; the help of each command has the others.
            """,
        version: "btcctl \(Product.version)",
        subcommands: [
            CurrentCommand.self, WatchCommand.self, WaitCommand.self, ConvertCommand.self, HistoryCommand.self,
            AtCommand.self, ChartCommand.self, StatusCommand.self, SourcesCommand.self, CurrenciesCommand.self,
            MetricsCommand.self, PauseCommand.self, ResumeCommand.self,
            RetryCommand.self,
        ])
}

/// A command that yields an ``Invocation``.
protocol InvocationCommand: ParsableCommand {
    /// - Throws: ArgumentParser's `ValidationError` for options that exclude each other.
    func invocation() throws -> Invocation
}

extension InvocationCommand {
    func validate() throws { _ = try invocation() }
}

struct CurrentCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "current", abstract: "Print the price once.",
        discussion: """
            Examples:
              btcctl current                                  Aug 25, 14:30 - $68,901.23
              btcctl current --raw                            68901.23, for scripts
              btcctl current --max-age 5m || echo too old
              btcctl current --format '{price} {age}'
              btcctl current -c EUR                           Aug 25, 14:30 - €59,411.02

            Exit status: 0 with a price (a stale one says so on standard error), 1 with none, 64 for a wrong command line, \
            69 if the daemon can't be reached, 74 if standard output can't be written, 75 if the price is older than --max-age. \
            With --bar: 0 whatever fails.
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption
    @OptionGroup var policies: PolicyOptions
    @OptionGroup var form: FormOptions
    @OptionGroup var barOption: BarOption

    func invocation() throws -> Invocation {
        .current(
            CurrentOptions(
                asking: AskingOptions(
                    socket: socketOption.socket, policy: policies.policy, maxAge: policies.maxAge,
                    currency: currencyOption.currency), output: try form.output(bar: barOption.bar)))
    }
}

struct WatchCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show the price at every tick, until stopped.",
        discussion: """
            Examples:
              btcctl watch
              btcctl watch -c EUR,USD
              btcctl watch --bar waybar
              btcctl watch --above 70k --exec 'notify-send "Bitcoin $BTCCTL_PRICE"'

            On a terminal, the price is redrawn in place. On a pipe, each tick is one line. The watch survives a restart of the daemon.

            With --exec, watch prints nothing and runs the command with sh at each change of the price or of its freshness. With --above, \
            --below or --change, it runs the command when the condition begins to hold. An unconfirmed price counts only with \
            --unconfirmed. The environment of the command has BTCCTL_VALUE, BTCCTL_PREVIOUS_VALUE, BTCCTL_DIRECTION and others, see \
            btcctl(1). Only one command runs at a time.

            Exit status: 64 for a wrong command line, 69 if the daemon can't be reached at the start, 74 if standard output can't be \
            written. With --bar, it waits for the daemon and shows the error meanwhile.
            """)

    @OptionGroup var socketOption: SocketOption

    @Option(
        name: [.customShort("c"), .long],
        help: ArgumentHelp(
            "The currencies, separated by commas. Without them: $BTCCTL_CURRENCY, the daemon's first.",
            valueName: "codes"), completion: Completions.currencyList,
        transform: {
            try $0.split(separator: ",", omittingEmptySubsequences: false).map { try currencyCode(String($0)) }
        })
    var currency: [String]?

    @Flag(help: "Show each change of the price between the ticks, too, as the exchanges' streams bring it.")
    var live = false

    @OptionGroup var form: FormOptions
    @OptionGroup var barOption: BarOption

    @Option(
        help: ArgumentHelp("Colours for up and down: auto (the default), always or never.", valueName: "when"),
        completion: choices(ColorChoice.self), transform: { try choice($0) })
    var color = ColorChoice.auto

    @Option(help: ArgumentHelp("Run this at each change, or when a condition begins to hold.", valueName: "command"))
    var exec: String?

    @OptionGroup var conditions: ConditionOptions

    func invocation() throws -> Invocation {
        let output = try form.output(bar: barOption.bar)
        if exec == nil, conditions.condition != PriceCondition() {
            throw ValidationError(
                "--above, --below, --change, --confirmed and --unconfirmed say when to run --exec; to wait for them: btcctl wait"
            )
        }
        if exec?.allSatisfy(\.isWhitespace) == true { throw ValidationError("--exec has no command") }
        if exec != nil, output.form != .text {
            throw ValidationError("with --exec nothing is printed: it excludes --json, --raw, --format and --bar")
        }
        let currencies = (currency ?? []).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        if currencies.count > 1, exec != nil || output.bar != nil {
            throw ValidationError("--exec and --bar take one currency")
        }
        return .watch(
            WatchOptions(
                socket: socketOption.socket, currencies: currencies, updates: live ? .changes : .ticks, output: output,
                color: color, command: exec, condition: conditions.condition))
    }
}

struct WaitCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait for a fresh price, or for one that meets a condition, and print it.",
        discussion: """
            Examples:
              btcctl wait --timeout 30s && start-the-shop
              btcctl wait --above 70k
              btcctl wait --change 2% --format 'moved to {price}'

            If the daemon is not running, wait for it too. --change is measured from the first fresh price. An unconfirmed price counts \
            only with --unconfirmed.

            Exit status: 0 with a fresh price, or if the only condition holds; with several conditions, 10 if --above holds, 11 if \
            --below holds, 12 if --change holds; 64 for a wrong command line, 69 if the daemon's response is not understood, 74 if \
            standard output can't be written, 75 if the price did not come within --timeout.
            """)

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption
    @OptionGroup var conditions: ConditionOptions

    @Option(
        help: ArgumentHelp("Give up after so long: 30s, 5m. Without it: never.", valueName: "duration"),
        transform: { try seconds($0, option: "--timeout") })
    var timeout: Duration?

    @OptionGroup var form: FormOptions

    func invocation() throws -> Invocation {
        .wait(
            WaitOptions(
                socket: socketOption.socket, currency: currencyOption.currency, timeout: timeout,
                condition: conditions.condition,
                output: try form.output()))
    }
}

struct ConvertCommand: InvocationCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert", abstract: "Print what amounts are worth in bitcoin, satoshis and money.",
        discussion: """
            Examples:
              btcctl convert 0.05btc          0.05 BTC in satoshis and dollars
              btcctl convert 250usd 70k       what 250 and 70,000 dollars buy
              btcctl convert 0.5 btc --raw    the exact number of dollars alone
              btcctl convert 0.05btc eur      0.05 BTC in satoshis and euros
              btcctl convert 250eur usd       what 250 euros buy, and their value in dollars

            An amount is 0.05btc, .5 btc, 100000sat, 250usd, '$70,000' or 70k; without an amount, one unit of the currency is \
            converted. The code of a currency alone says what the others are converted to. Money is converted to whole satoshis, and to eight places of another currency. All other conversions are exact to 18 digits; --raw and --json print them all.

            Exit status: 0 with a price (a stale one says so on standard error), 1 with none, 64 for a wrong command line, 69 if the \
            daemon can't be reached, 74 if standard output can't be written, 75 if the price is older than --max-age.
            """)

    @Argument(help: "What to convert: 0.05btc, 100000sat, 250usd, '$70,000', 70k usd.")
    var amounts: [String] = []

    @OptionGroup var socketOption: SocketOption
    @OptionGroup var currencyOption: CurrencyOption
    @OptionGroup var policies: PolicyOptions
    @OptionGroup var output: JSONOption

    @Flag(help: "Print the exact number alone: money, or bitcoin for money without another currency.")
    var raw = false

    func invocation() throws -> Invocation {
        guard !(raw && output.json) else { throw ValidationError("only one of --json and --raw can be printed") }
        let (amounts, currency) = try Self.read(amounts, in: currencyOption.currency)
        return .convert(
            ConvertOptions(
                asking: AskingOptions(
                    socket: socketOption.socket, policy: policies.policy, maxAge: policies.maxAge, currency: currency),
                amounts: amounts.isEmpty ? [GivenAmount(value: 1)] : amounts,
                form: raw ? .raw : output.json ? .json : .text))
    }

    /// Reads amounts and the currency to convert them to, which may be named by a code alone as the last word.
    static func read(_ words: [String], in named: String?) throws -> ([GivenAmount], String?) {
        var (texts, currency) = (joined(words), named)
        if let last = texts.last, texts.count > 1, let code = Currency(rawValue: last.uppercased()) {
            guard named ?? code.rawValue == code.rawValue else {
                throw ValidationError("--currency \(named ?? "") and '\(last)' exclude each other")
            }
            currency = code.rawValue
            texts.removeLast()
        }
        return (try texts.map(amount), currency)
    }

    /// Joins a number and its unit if they are two words: `0.05 btc`.
    private static func joined(_ words: [String]) -> [String] {
        var texts: [String] = []
        for word in words {
            // Join a number and a unit even if they are not a valid amount, so that the error names both.
            if let last = texts.last, Amount(last) == nil,
                last.last.map({ $0.isNumber || "kKmM".contains($0) }) == true,
                Amount.Unit(name: word.lowercased()) != nil
            {
                texts[texts.count - 1] = last + word
            } else {
                texts.append(word)
            }
        }
        return texts
    }

    /// Reads an amount. A unit alone means one of it: `btc` is 1 BTC. A number with k or M may have no unit.
    private static func amount(_ text: String) throws -> GivenAmount {
        if let unit = Amount.Unit(name: text.lowercased()) { return GivenAmount(value: 1, unit: unit) }
        if let amount = Amount(text) { return GivenAmount(value: amount.value, unit: amount.unit) }
        if text.last.map({ "kKmM".contains($0) }) == true, let amount = Amount(text, unit: .money(.usd)) {
            return GivenAmount(value: amount.value)
        }
        throw ValidationError("'\(text)' is not an amount: \(Amount.mistake(in: text))")
    }
}
