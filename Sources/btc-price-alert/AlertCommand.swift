import BTCPriceCore
import BTCPriceSocket
import CommandLine
import Glibc

/// The command line.
enum AlertCommand {
    case run
    /// Without a name, one is made.
    case add(name: String?, Alert)
    case list
    case test(String)
    case pause(String)
    case resume(String)
    case remove(String)

    static let program = Program(
        Command(
            "btc-price-alert", "Keeps alerts on the price of a bitcoin that btc-priced keeps.",
            details: """
                Examples:
                  btcctl alert add --below 60000
                  btcctl alert add --change 5% --within 1h --exec ./my-program
                  btcctl alert list

                'btcctl alert' is the same as this program. The service btc-price-alert keeps the alerts, also when no terminal is \
                open. The first 'add' starts it, and the last 'remove' stops it.

                Exit status: 0 on success, 1 if it failed, 64 for a wrong command line.
                """,
            commands: [
                Command(
                    "add", "Add an alert.",
                    details: """
                        Examples:
                          btcctl alert add --below 60000 --once
                          btcctl alert add --above 100k --for 5m --notify --exec beep -- -l 500
                          btcctl alert add --when-stale 5m
                          btcctl alert add --when-unsure --max-uncertainty 0.5%

                        One of the conditions --below, --above, --change, --when-stale and --when-unsure is needed. An alert that is \
                        beyond when it is added fires after it has been back. With neither --confirmed nor --unconfirmed, what \
                        only unconfirmed prices say counts after a minute, and the message says so.

                        The command has the variables of 'btcctl watch --exec', and BTCCTL_ALERT, BTCCTL_MESSAGE and BTCCTL_ID. It \
                        is not run by a shell. If it fails, it runs again after 5 s, 30 s and 2 min, with the same BTCCTL_ID.
                        """,
                    options: [name] + AlertField.allCases.map(\.option) + [system, socket],
                    words: [
                        Words("argument", "An argument of the command of --exec.", count: 0...100, completion: .files)
                    ]),
                Command("list", "List the alerts, what fired last, and what is wrong.", options: [system]),
                Command("test", "Tell of an alert now, as if it fired.", options: [system, socket], words: [one]),
                Command("pause", "Let an alert tell of nothing.", options: [system], words: [one]),
                Command("resume", "End a pause.", options: [system], words: [one]),
                Command("remove", "Remove an alert.", options: [system], words: [one]),
                Command(
                    "run", "Keep the alerts. The service runs this.", options: [system, socket]),
            ]),
        version: "btc-price-alert \(Product.fullVersion)",
        otherNames: ["new": "add", "set": "add", "delete": "remove", "rm": "remove", "ls": "list", "mute": "pause"])

    static let system = Option(
        "--system", "The system's alerts: those of /etc/btc-priced/alerts.toml, which are root's.")
    static let socket = Option("--socket", value: "path", "The daemon's socket.", completion: .files)
    private static let name = Option("--name", value: "name", "The alert's name. Default: of its condition.")
    private static let one = Words(
        "name", "The alert.", count: 1...1,
        completion: .computed { words, _ in
            let paths = AlertPaths(isSystem: words.contains(system.name), environment: processEnvironment())
            return (try? paths.file.content().names) ?? []
        })

    init(_ line: ParsedLine, _ environment: [String: String]) throws(UsageError) {
        switch line.command {
        case "add":
            let name = try line.value(Self.name) { text throws(UsageError) in
                guard Alert.isName(text) else { throw UsageError(Alert.nameRule) }
                return text
            }
            self = .add(
                name: name,
                try Alert(name ?? "", line) { () throws(UsageError) in try Self.currency(line, environment) })
        case "test": self = .test(line.words[0])
        case "pause": self = .pause(line.words[0])
        case "resume": self = .resume(line.words[0])
        case "remove": self = .remove(line.words[0])
        case "list": self = .list
        default: self = .run
        }
    }

    static func socket(_ named: String?, _ environment: [String: String]) -> @Sendable () -> String {
        SocketSearch.finder(named: named, environment: { environment[$0] }, uid: getuid())
    }

    /// The currency of an alert that names none.
    private static func currency(_ line: ParsedLine, _ environment: [String: String]) throws(UsageError) -> String {
        if let text = environment["BTCCTL_CURRENCY"], !text.isEmpty { return try currencyCode(text) }
        let path = socket(line.text(socket), environment)()
        do throws(ClientError) {
            var connection = try PriceConnection(path: path, timeout: .seconds(2))
            if let first = try connection.listCurrencies().first { return first.currency }
            throw .closed(path: path)
        } catch {
            throw UsageError("no currency is named, and the daemon can't be asked (\(error)): add -c USD")
        }
    }
}

extension AlertField {
    var option: Option {
        let (value, help): (String?, String) =
            switch self {
            case .below: ("price", "The price is lower: 60000, 60k or $60,000.50.")
            case .above: ("price", "The price is higher.")
            case .change: ("amount", "The price has moved so far, up or down: '5%', or '500' of its currency.")
            case .within: ("duration", "The time of a change: 1h.")
            case .whenStale: ("duration", "There has been no fresh price for so long: 5m.")
            case .whenUnsure: (nil, "The price is unconfirmed, or other exchanges contradict it.")
            case .maxUncertainty: ("percent", "With --when-unsure: or its uncertainty is larger, or not known.")
            case .currency: ("code", "The currency. Default: the amount's, $BTCCTL_CURRENCY, the daemon's first.")
            case .hold: ("duration", "The condition holds for so long.")
            case .rearm: ("percent", "How far the price moves back before it fires again. Default: 1%.")
            case .once: (nil, "Fire only once.")
            case .atMostEvery: ("duration", "The shortest time between two messages. The next one counts the others.")
            case .confirmed: (nil, "Take only prices that another exchange confirms.")
            case .unconfirmed: (nil, "Take an unconfirmed price at once.")
            case .notify: (nil, "Show a desktop notification. This is the default without --exec.")
            case .exec: ("program", "Run a program, with the words of the command line as its arguments.")
            }
        return Option(
            "--\(rawValue)", letter: self == .currency ? "c" : nil, value: value, help,
            completion: self == .exec ? .files : .none)
    }
}

extension ParsedLine: AlertFields {
    typealias Failure = UsageError

    func isSet(_ field: AlertField) -> Bool { has(field.option) }

    func value<Value>(
        _ field: AlertField, _ read: (String) throws(UsageError) -> Value
    ) throws(UsageError) -> Value? { try value(field.option, read) }

    /// The program by a path that is right in every directory, and its arguments.
    func command() throws(UsageError) -> [String] {
        guard let program = text(AlertField.exec.option) else {
            if let word = words.first { throw UsageError("unexpected word '\(word)': arguments are those of --exec") }
            return []
        }
        guard !program.isEmpty else { throw UsageError("--exec needs a program") }
        guard program.contains("/"), !program.hasPrefix("/") else { return [program] + words }
        guard let here = getcwd(nil, 0) else { throw UsageError("the current directory has no path") }
        defer { free(here) }
        return ["\(String(cString: here))/\(program.hasPrefix("./") ? String(program.dropFirst(2)) : program)"] + words
    }

    func failure(_ field: AlertField?, _ problem: String) -> UsageError {
        UsageError(field.map { "\($0.option.name): \(problem)" } ?? problem)
    }
}
