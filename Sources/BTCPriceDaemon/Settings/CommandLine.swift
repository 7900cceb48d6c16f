import BTCPriceFeature

/// The daemon's parsed command line: the action, the configuration file, and the settings.
struct DaemonCommandLine {
    enum Action: Sendable {
        case run, checkConfiguration, printConfiguration, printStandardConfiguration, printVersion, printHelp
        case reload(Int32)
        case printCompletions(Completions.Shell)
        /// Tries an exchange, with a saved body or a request.
        case tryExchange(String, body: String?)
    }

    /// An invalid command line.
    struct UsageError: Error, CustomStringConvertible {
        let description: String
    }

    var action = Action.run
    var configurationPath: String?
    var settings: [(key: SettingKey, text: String)] = []

    /// - Parameter arguments: Without the program's name.
    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            var flag = argument
            var attached: String?
            if argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") {
                flag = String(argument[..<equals])
                attached = String(argument[argument.index(after: equals)...])
            }
            func value() throws(UsageError) -> String {
                if let attached { return attached }
                guard let next = rest.popFirst() else { throw UsageError(description: "\(flag) needs a value") }
                return next
            }
            switch flag {
            case "--check-config" where attached == nil: action = .checkConfiguration
            case "--print-config" where attached == nil: action = .printConfiguration
            case "--print-default-config" where attached == nil: action = .printStandardConfiguration
            case "--reload": action = .reload(try Self.processID(try value()))
            case "--generate-completion-script": action = .printCompletions(try Self.shell(try value()))
            case "--try":
                let name = try value()
                let file = rest.first.flatMap { $0.hasPrefix("--") ? nil : $0 }
                if file != nil { rest.removeFirst() }
                action = .tryExchange(name, body: file)
            case "--version" where attached == nil: action = .printVersion
            case "--help" where attached == nil, "-h" where attached == nil: action = .printHelp
            case "--config": configurationPath = try value()
            default:
                guard let key = SettingKey(flag: flag) else {
                    let known = Self.flags.map(\.flag) + SettingKey.all.map(\.flag)
                    let advice = Suggestion.advice(on: flag, among: known, prefix: "--")
                    throw UsageError(description: "unknown argument '\(argument)'\(advice)")
                }
                settings.append((key, try value()))
            }
        }
    }

    private static func processID(_ text: String) throws(UsageError) -> Int32 {
        guard let pid = Int32(text), pid > 0 else {
            throw UsageError(description: "--reload needs a process, not '\(text)'")
        }
        return pid
    }

    private static func shell(_ text: String) throws(UsageError) -> Completions.Shell {
        guard let shell = Completions.Shell(rawValue: text) else {
            throw UsageError(description: "there are completions for bash, zsh and fish, not for '\(text)'")
        }
        return shell
    }

    /// The flags that are not settings, each with its purpose and the name of its value, if it takes one.
    static let flags: [(flag: String, summary: String, value: String?)] = [
        ("--config", "read this file instead of the default one", "FILE"),
        ("--check-config", "say whether the configuration is good, and end", nil),
        ("--print-config", "show every setting and where it came from, and end", nil),
        ("--print-default-config", "show a file with every setting, its default and what it is for, and end", nil),
        (
            "--try", "request the price of an exchange once, or read a saved body, and say what its description finds",
            "NAME [FILE]"
        ),
        (
            "--reload",
            "check the configuration of the daemon with this process ID, make that daemon reload it, and exit", "PID"
        ),
        ("--version", "show the version, and end", nil),
        ("--help", "show this, and end", nil),
    ]

    private static var flagLines: String {
        flags.map { flag, summary, value in
            let start = "  \(flag)\(value.map { " \($0)" } ?? "")"
            return start + String(repeating: " ", count: max(2, 26 - start.count)) + summary
        }.joined(separator: "\n")
    }

    /// The text of `--help`.
    static let help = """
        btc-priced keeps the price of a bitcoin for the whole machine.

        Usage: btc-priced [--config FILE] [--SETTING VALUE]...
               btc-priced --check-config | --print-config | --print-default-config | --try NAME [FILE] | --reload PID
               btc-priced --version | --help

        \(flagLines)

        Every setting of the file can be given here, with '-' for '.', or in the environment:
        tick.interval-ms in the file is --tick-interval-ms and BTC_PRICED_TICK_INTERVAL_MS.
        source.NAME.socket makes another btc-priced a source.
        The command line overrides the environment, the environment overrides the file, and the file overrides the defaults.

        Exit status: 0 if the daemon was stopped, 64 for an invalid command line, 78 for an invalid configuration,
        1 if the daemon can't run (the message says why).

        """
}
