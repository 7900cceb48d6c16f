import BTCPriceNetworking
import BTCPriceSocket
import CommandLine
import Glibc

/// The daemon's command line: what to do, the configuration file, and the settings.
struct DaemonCommandLine {
    enum Action: Sendable {
        case run, checkConfiguration, printConfiguration, printStandardConfiguration
        /// Tries an exchange, with a saved body or a request.
        case tryExchange(String, body: String?)
        /// Makes a running daemon read its configuration again, and waits.
        case reload(pid: Int32)
        /// Looks for what is wrong on this machine. `mayConnect` is whether names may be looked up, and connections opened.
        case diagnose(mayConnect: Bool)
    }

    var action = Action.run
    var configurationPath: String?
    var settings: [(key: SettingKey, text: String)] = []

    static let program = Program(
        Command(
            "btc-priced", "Keeps the price of a bitcoin for the whole machine.",
            details: """
                Every setting of the file can be given here, with '-' for '.', or in the environment: tick.interval-ms in the file \
                is --tick-interval-ms and BTC_PRICED_TICK_INTERVAL_MS. source.NAME.socket makes another btc-priced a source. The \
                command line overrides the environment, the environment overrides the file, and the file overrides the defaults.

                Exit status: 0 if the daemon was stopped, 64 for an invalid command line, 78 for an invalid configuration, 1 if the \
                daemon can't run (the message says why).
                """,
            options: [config, check, reload, printAll, printDefault, tryOne, diagnose, offline]
                + SettingKey.all.map(Self.option),
            words: [
                Words("file", "With --try: read this saved body and request nothing.", count: 0...1, completion: .files)
            ]),
        version: "\(Product.name) \(Product.fullVersion)", otherOption: { SettingKey(flag: $0).map(option) })

    private static let config = Option(
        "--config", value: "file", "Read this file instead of the default one.", completion: .files)
    private static let check = Option("--check-config", "Check the configuration, and exit.")
    private static let reload = Option(
        "--reload", value: "pid",
        "Make the running daemon with this process ID read its configuration again, wait until it is in use, and exit.")
    private static let printAll = Option("--print-config", "Print every setting and its origin, and exit.")
    private static let printDefault = Option(
        "--print-default-config", "Print a file with every setting, its default and its purpose, and exit.")
    private static let tryOne = Option(
        "--try", value: "name",
        "Request the price of an exchange once, or read a saved body, and print what its description finds.",
        completion: .computed { words, _ in triable(words) })

    private static let diagnose = Option(
        "--diagnose",
        "Look for what is wrong on this machine, print it as JSON, and exit. It opens a connection to each exchange."
    )
    private static let offline = Option("--offline", "With --diagnose: look up no names, and open no connection.")

    /// The names of the exchanges and sources of rates that are built in, described in files, or described in the configuration.
    private static func triable(_ words: [String]) -> [String] {
        let path = words.firstIndex(of: config.name).flatMap { words.dropFirst($0 + 1).first }
        let files = try? ConfigurationFiles(
            DaemonCommandLine(configurationPath: path), environment: processEnvironment(), uid: getuid())
        guard let files else { return Exchange.all.map(\.name) }
        let names = files.exchanges.map(\.name)
        return names + files.installed.filter { !names.contains($0) } + files.rateSources.map(\.name)
    }

    private static func option(_ key: SettingKey) -> Option {
        let completion: Completion =
            switch key.kind {
            case .choice(let choices): .words(choices)
            case .flag: .words(["true", "false"])
            case .text(.path), .text(.socketPath): .files
            case .text(.logLevel): .words(["trace", "debug", "info", "notice", "warning", "error", "critical"])
            default: .none
            }
        return Option(key.flag, value: "value", key.purpose + ".", completion: completion, isListed: false)
    }
}

extension DaemonCommandLine {
    init(_ line: ParsedLine) throws(UsageError) {
        for (name, text) in line.options {
            switch name {
            case Self.config.name: configurationPath = text
            case Self.check.name: action = .checkConfiguration
            case Self.reload.name:
                guard let pid = Int32(text), pid > 0 else { throw UsageError("--reload needs a process ID") }
                action = .reload(pid: pid)
            case Self.diagnose.name: action = .diagnose(mayConnect: !line.has(Self.offline))
            case Self.offline.name:
                guard line.has(Self.diagnose) else { throw UsageError("--offline belongs to --diagnose") }
            case Self.printAll.name: action = .printConfiguration
            case Self.printDefault.name: action = .printStandardConfiguration
            case Self.tryOne.name: action = .tryExchange(text, body: line.words.first)
            default: if let key = SettingKey(flag: name) { settings.append((key, text)) }
            }
        }
        if let word = line.words.first, !line.has(Self.tryOne) { throw UsageError("unexpected word '\(word)'") }
    }
}
