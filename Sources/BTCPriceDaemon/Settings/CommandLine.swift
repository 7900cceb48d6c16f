/// The daemon's command line, read: what to do, which file, and the settings given on it.
struct DaemonCommandLine {
    enum Action: Sendable {
        case run, checkConfiguration, printConfiguration, printVersion, printHelp
    }

    /// A command line that can't be understood.
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
            case "--version" where attached == nil: action = .printVersion
            case "--help" where attached == nil, "-h" where attached == nil: action = .printHelp
            case "--config": configurationPath = try value()
            default:
                guard let key = SettingKey.all.first(where: { $0.flag == flag }) else {
                    throw UsageError(description: "unknown argument '\(argument)'")
                }
                settings.append((key, try value()))
            }
        }
    }

    /// The text of `--help`.
    static let help = """
        btc-priced keeps the BTC/USD price for the whole machine.

        Usage: btc-priced [--config FILE] [--SETTING VALUE]...
               btc-priced --check-config | --print-config | --version | --help

          --config FILE     read this file instead of the default one
          --check-config    say whether the configuration is good, and end
          --print-config    show every setting and where it came from, and end
          --version         show the version, and end

        Every setting of the file can be given here, with '-' for '.', or in the environment:
        tick.interval-ms in the file is --tick-interval-ms and BTC_PRICED_TICK_INTERVAL_MS.
        The command line goes before the environment, that before the file, that before the defaults.

        Exit status: 0 after a stop, 64 for a command line that can't be understood, 78 for a bad configuration,
        1 where it can't run (its message says why).

        """
}
