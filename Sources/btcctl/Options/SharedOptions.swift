import BTCPriceCore
import BTCPriceFeature
import CommandLine

// The options that several commands share, and what is read from them.

extension Option {
    /// Its value in a command line that may not be valid.
    func text(in words: [String]) -> String? {
        words.firstIndex(of: name).flatMap { words.dropFirst($0 + 1).first }
            ?? words.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    static let socket = Option(
        "--socket", value: "path",
        "The daemon's socket. Default: $BTC_PRICED_SOCKET, the user's own daemon, the system's.",
        completion: .files)
    static let timeout = Option(
        "--timeout", value: "duration", "Wait this long for the daemon to respond: 500ms, 2s.")
    static let quiet = Option("--quiet", letter: "q", "Print no notes on standard error, only errors.")
    static let currency = Option(
        "--currency", letter: "c", value: "code",
        "The currency, such as EUR. Default: $BTCCTL_CURRENCY, the daemon's first.",
        completion: .computed { words, _ in Completions.currencies(words) })
    static let json = Option("--json", "Print one JSON object, for an error too.")
    static let jsonLines = Option("--json", "Print one JSON object per line, also for errors.")
    static let raw = Option("--raw", "Print the exact value alone; with --sats it is rounded.")
    static let format = Option(
        "--format", value: "text",
        "Print this text with values filled in: '{price} {time} {age} {source}' and others; \\n is a new line, \\t a tab.",
        completion: .computed { _, beginning in
            let given = beginning.lastIndex(of: "{").map { beginning[..<$0] } ?? beginning[...]
            return FormatTemplate.Field.allCases.map { "\(given){\($0.rawValue)}" }
        })
    static let sats = Option(
        "--sats", "Show the satoshis that one unit of the currency buys. With --json, this changes nothing.")
    static let bar = Option(
        "--bar", value: "name",
        "Print the format of this status bar: waybar, i3blocks, polybar, or plain text for any other. On any failure, the line is still valid and the exit status 0.",
        completion: .words(Bar.allCases.map(\.rawValue)))
    static let refresh = Option(
        "--refresh", "Request the price from the exchanges now; if that fails, show the held price.")
    static let noCache = Option(
        "--no-cache", "Request the price from the exchanges now; if that fails, exit with status 1.")
    static let maxAge = Option(
        "--max-age", value: "duration", "Take no price that is older: 30s, 5m.")
    static let maxUncertainty = Option(
        "--max-uncertainty", value: "percent",
        "Take no price whose uncertainty is larger, or not known: '0.5%'.")
    static let utc = Option("--utc", "Print times in UTC, not in the local time zone.")
    static let iso = Option("--iso", "Print times as in 2026-08-25T14:30:05+02:00.")
    static let color = Option(
        "--color", value: "when", "Colours for up and down: auto (the default), always or never.",
        completion: .words(ColorChoice.allCases.map(\.rawValue)))
    static let symbols = Option(
        "--symbols", value: "name", "What a line is drawn with: braille (the default), blocks or ascii.",
        completion: .words(Chart.Symbols.allCases.map(\.rawValue)))
    static let ascii = Option("--ascii", "Use ASCII characters only.")
    static let above = Option("--above", value: "price", "The price is higher.")
    static let below = Option("--below", value: "price", "The price is lower.")
    static let change = Option(
        "--change", value: "amount",
        "The price has moved by this amount, up or down: '2%', or '500' of its currency.")
    static let unconfirmed = Option("--unconfirmed", "Take an unconfirmed price, too.")
    static let confirmed = Option("--confirmed", "Take only a price that another exchange confirms.")
    static let dayZone = Option(
        "--day-zone", value: "zone",
        "Where a day begins: at midnight in utc (the default) or in the local time zone.",
        completion: .words(DayZone.allCases.map(\.rawValue)))

    static let daemon = [socket, timeout, quiet]
    static let times = [utc, iso]
    static let forms = [jsonLines, raw, format, sats] + times
    static let policies = [refresh, noCache, maxAge]
    static let requirements = [confirmed, maxUncertainty]
    static let conditions = [above, below, change, unconfirmed] + requirements
}

/// The daemon to request the price from, and the policy.
struct AskingOptions: Equatable {
    var daemon = DaemonAddress()
    var policy = CachePolicy.localFirst
    /// The maximum age of the price, which the daemon judges.
    var maxAge: Duration?
    /// What else is required of the price.
    var requirements = PriceRequirements()
    /// ISO 4217; `nil` for the currency in `BTCCTL_CURRENCY`, otherwise the daemon's first.
    var currency: String?
}

/// What a command prints that has no other form.
enum PlainForm {
    case text
    case json
    case raw
}

extension ParsedLine {
    /// The daemon of a command that has the options ``Option/daemon``.
    func daemon() throws(UsageError) -> DaemonAddress {
        let timeout = try value(.timeout, duration)
        if timeout == .zero { throw UsageError("'0' is not valid for --timeout: it is longer than 0") }
        return DaemonAddress(socket: text(.socket), timeout: timeout)
    }

    func currency() throws(UsageError) -> String? { try value(.currency, currencyCode) }

    var timestamps: TimestampFormatter { TimestampFormatter(isUTC: has(.utc), isISO: has(.iso)) }

    func asking() throws(UsageError) -> AskingOptions {
        if has(.refresh), has(.noCache) { throw UsageError("--refresh and --no-cache exclude each other") }
        return AskingOptions(
            daemon: try daemon(), policy: has(.noCache) ? .noCache : has(.refresh) ? .remoteFirst : .localFirst,
            maxAge: try value(.maxAge, duration), requirements: try requirements(.all), currency: try currency())
    }

    /// - Parameter usual: The trust if no option says another one.
    func requirements(_ usual: PriceRequirements.Trust) throws(UsageError) -> PriceRequirements {
        if has(.unconfirmed), has(.confirmed) {
            throw UsageError("--unconfirmed and --confirmed exclude each other")
        }
        return PriceRequirements(
            trust: has(.unconfirmed) ? .all : has(.confirmed) ? .confirmed : usual,
            maxUncertainty: try value(.maxUncertainty) { text throws(UsageError) in
                guard let percent = PriceRequirements.percent(text) else {
                    throw UsageError("it is a percentage such as 0.5%")
                }
                return percent
            })
    }

    func output() throws(UsageError) -> PriceOutput {
        let template = try value(.format, FormatTemplate.init)
        let bar = try choice(.bar, among: Bar.allCases)
        let forms: [PriceOutput.Form?] = [
            has(.json) ? .json : nil, has(.raw) ? .raw : nil, template.map { .format($0) }, bar.map { .bar($0) },
        ]
        let chosen = forms.compactMap(\.self)
        guard chosen.count <= 1 else {
            throw UsageError("only one of --json, --raw, --format and --bar can be printed")
        }
        return PriceOutput(form: chosen.first ?? .text, timestamps: timestamps, isInSatoshis: has(.sats))
    }

    func plainForm() throws(UsageError) -> PlainForm {
        if has(.raw), has(.json) { throw UsageError("only one of --json and --raw can be printed") }
        return has(.raw) ? .raw : has(.json) ? .json : .text
    }

    func color() throws(UsageError) -> ColorChoice {
        try choice(.color, among: ColorChoice.allCases) ?? .auto
    }

    /// What a chart is drawn with: ASCII, where the locale is not UTF-8.
    func symbols() throws(UsageError) -> Chart.Symbols {
        let named = try choice(.symbols, among: Chart.Symbols.allCases)
        if has(.ascii), let named, named != .ascii { throw UsageError("--ascii and --symbols exclude each other") }
        return has(.ascii) || !Output.isUnicode ? .ascii : named ?? .braille
    }

    func dayZone() throws(UsageError) -> DayZone {
        try choice(.dayZone, among: DayZone.allCases) ?? .utc
    }

    /// - Parameter code: The currency of the price, if it is known.
    func condition(in code: String? = nil) throws(UsageError) -> PriceCondition {
        var condition = PriceCondition()
        func take(_ currency: Currency?) throws(UsageError) {
            guard let currency else { return }
            if let other = condition.currency, other != currency {
                throw UsageError("the conditions are in \(other) and \(currency): write both in one currency")
            }
            condition.currency = currency
        }
        func bound(_ text: String) throws(UsageError) -> Price {
            let (price, currency) = try positive(text, "70000, 70k or $70,000.50")
            try take(currency)
            return price
        }
        condition.above = try value(.above, bound)
        condition.below = try value(.below, bound)
        condition.change = try value(.change) { text throws(UsageError) in
            let (value, isPercent, currency) = try movement(text)
            try take(currency)
            return isPercent ? .percent(value) : .amount(value)
        }
        if let code, let mistake = condition.mistake(in: code) { throw UsageError(mistake) }
        return condition
    }
}

/// Reads a point in time.
/// - Returns: The time; the midnight of UTC that begins the day, if it names one; and a note if it occurs twice.
func moment(
    _ text: String, isUTC: Bool, now: Timestamp
) throws(UsageError) -> (time: Timestamp, utcDay: Timestamp?, note: String?) {
    do throws(ReaderTime.Mistake) {
        let read = try ReaderTime.reading(text, isUTC: isUTC, now: now)
        let exact = TimestampFormatter(isUTC: isUTC, isISO: true)
        let note = read.second.map { second in
            "\(text) occurs twice: this is the first one, \(exact.string(from: read.time)). The second one is \(exact.string(from: second))."
        }
        return (read.time, ReaderTime.utcDay(text, read: read.time, isUTC: isUTC, now: now), note)
    } catch {
        throw UsageError(error.message)
    }
}

/// When the output is coloured.
enum ColorChoice: String, CaseIterable {
    case auto
    case always
    case never

    /// - Parameters:
    ///   - isTerminal: Whether standard output is a terminal.
    ///   - environment: Looks up a variable. `NO_COLOR` (no-color.org) counts unless it is empty.
    func isWanted(isTerminal: Bool, environment: (String) -> String?) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && environment("TERM") != "dumb" && (environment("NO_COLOR") ?? "").isEmpty
        }
    }
}

struct Verb: Sendable {
    let command: Command
    let run: @Sendable (ParsedLine) throws(UsageError) -> Int32
}
