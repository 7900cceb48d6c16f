import ArgumentParser
import BTCPriceCore
import BTCPriceFeature

// Groups of options that several commands share.

struct SocketOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's socket. Without it: $BTC_PRICED_SOCKET, the user's own daemon, the system's.",
            valueName: "path"))
    var socket: String?
}

struct CurrencyOption: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The currency, such as EUR. Without it: $BTCCTL_CURRENCY, the daemon's first.",
            valueName: "code"), completion: Completions.currency, transform: currencyCode)
    var currency: String?
}

/// Reads a currency: a code of three letters, or a sign such as `€`. Accepts unknown codes, because a newer daemon may know them.
func currencyCode(_ text: String) throws -> String {
    if let sign = Currency.known.first(where: { $0.symbol == text }) { return sign.rawValue }
    guard text.wholeMatch(of: /[A-Za-z]{3}/) != nil else {
        throw ValidationError(
            "--currency is a code of three letters, such as EUR"
                + (text.contains(",") ? "; only 'btcctl watch' takes several, and 'btcctl currencies' shows all" : ""))
    }
    return text.uppercased()
}

struct JSONOption: ParsableArguments {
    @Flag(help: "Print one JSON object, for an error too.")
    var json = false
}

struct PolicyOptions: ParsableArguments {
    @Flag(help: "Request the price from the exchanges now; if that fails, show the held price.")
    var refresh = false

    @Flag(help: "Request the price from the exchanges now; if that fails, exit with status 1.")
    var noCache = false

    @Option(
        help: ArgumentHelp("Fail with status 75 if the price is older: 30s, 5m.", valueName: "duration"),
        transform: { try seconds($0, option: "--max-age") })
    var maxAge: Duration?

    func validate() throws {
        guard !(refresh && noCache) else { throw ValidationError("--refresh and --no-cache exclude each other") }
    }

    var policy: CachePolicy { noCache ? .noCache : refresh ? .remoteFirst : .localFirst }
}

struct TimeOptions: ParsableArguments {
    @Flag(help: "Print times in UTC, not in the local time zone.")
    var utc = false

    @Flag(help: "Print times as in 2026-08-25T14:30:05+02:00.")
    var iso = false

    var timestamps: ReaderTimestampFormatter { ReaderTimestampFormatter(isUTC: utc, isISO: iso) }
}

struct FormOptions: ParsableArguments {
    @Flag(help: "Print one JSON object per line, also for errors.")
    var json = false

    @Flag(help: "Print the exact value alone; with --sats it is rounded.")
    var raw = false

    @Option(
        help: ArgumentHelp(
            "Print this text with values filled in: '{price} {time} {age} {source}' and others.", valueName: "text"),
        completion: Completions.template,
        transform: FormOptions.template)
    var format: FormatTemplate?

    @Flag(help: "Show the satoshis that one unit of the currency buys. With --json, this changes nothing.")
    var sats = false

    @OptionGroup var times: TimeOptions

    /// - Throws: `ValidationError` if more than one form is given.
    func output(bar: Bar? = nil) throws -> PriceOutput {
        let forms: [PriceOutput.Form?] = [
            json ? .json : nil, raw ? .raw : nil, format.map { .format($0) }, bar.map { .bar($0) },
        ]
        let chosen = forms.compactMap(\.self)
        guard chosen.count <= 1 else {
            throw ValidationError("only one of --json, --raw, --format and --bar can be printed")
        }
        return PriceOutput(form: chosen.first ?? .text, timestamps: times.timestamps, isInSatoshis: sats)
    }

    private static func template(_ text: String) throws -> FormatTemplate {
        do {
            return try FormatTemplate(text)
        } catch {
            throw ValidationError(error.message)
        }
    }
}

/// Reads one of several words.
func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ text: String, among choices: [Choice] = Array(Choice.allCases)
) throws -> Choice {
    if let choice = choices.first(where: { $0.rawValue == text }) { return choice }
    let words = choices.map(\.rawValue)
    throw ValidationError("it is \(words.dropLast().joined(separator: ", ")) or \(words.last ?? "")")
}

/// The shell completion for one of several words.
func choices<Choice: CaseIterable & RawRepresentable<String>>(_: Choice.Type) -> CompletionKind {
    .list(Choice.allCases.map(\.rawValue))
}

struct BarOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print the format of this status bar: waybar, i3blocks or polybar. On any failure, the line is still valid and the exit status 0.",
            valueName: "name"), completion: choices(Bar.self), transform: { try choice($0) })
    var bar: Bar?
}

struct ConditionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The price is higher.", valueName: "price"),
        transform: { try positive($0, option: "--above") })
    var above: Price?

    @Option(
        help: ArgumentHelp("The price is lower.", valueName: "price"),
        transform: { try positive($0, option: "--below") })
    var below: Price?

    @Option(
        help: ArgumentHelp(
            "The price has moved by this amount, up or down: '2%', or '500' of its currency.", valueName: "amount"),
        transform: ConditionOptions.change)
    var change: PriceCondition.Change?

    @Flag(help: "Take an unconfirmed price, too.")
    var unconfirmed = false

    @Flag(help: "Take only a price that another exchange confirms.")
    var confirmed = false

    func validate() throws {
        guard !(unconfirmed && confirmed) else {
            throw ValidationError("--unconfirmed and --confirmed exclude each other")
        }
    }

    var condition: PriceCondition {
        PriceCondition(
            above: above, below: below, change: change, trust: unconfirmed ? .all : confirmed ? .confirmed : .usual)
    }

    private static func change(_ text: String) throws -> PriceCondition.Change {
        text.hasSuffix("%")
            ? .percent(try positive(text.dropLast(), option: "--change"))
            : .dollars(try positive(text, option: "--change"))
    }
}

/// Parses a positive decimal number.
private func positive(_ text: some StringProtocol, option: String) throws -> Price {
    guard let amount = Amount(String(text), unit: .money(.usd)), amount.unit == .money(.usd), amount.value > 0 else {
        let example = option == "--change" ? "such as 2% or 500" : "such as 70000, 70k or $70,000.50"
        throw ValidationError("\(option) is a positive number \(example)")
    }
    return amount.value
}

/// Parses a duration: a number of seconds, or numbers with the units s, m, min, h and d.
func seconds(_ text: String, option: String) throws -> Duration {
    let units: [Substring: Double] = ["s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400]
    let parts = text.matches(of: /(\d+\.?\d*|\.\d+)([a-z]*)/)
    let values = parts.map { part in
        Double(part.1).flatMap { number in (part.2.isEmpty && parts.count == 1 ? 1 : units[part.2]).map { number * $0 }
        }
    }
    let sum = values.reduce(0) { $0 + ($1 ?? .infinity) }
    guard !text.isEmpty, parts.map(\.0).joined() == text, sum <= 1e9 else {
        throw ValidationError("\(option) is a duration, such as 30, 30s, 5m, 1h30m or 1d")
    }
    return .seconds(sum)
}
