import BTCPriceCore
import BTCPriceNetworking
import Configuration

/// The configuration file, and the files that describe exchanges.
struct ConfigurationFiles {
    /// The settings, the stronger ones after the weaker ones.
    private(set) var settings: [(entry: ConfigurationFile.Entry, origin: Origin)] = []
    /// The exchanges that can be sources: those that are built in, and those that are described. A description with the name of another
    /// one replaces it whole: the configuration file's is the strongest, then those of the directories, then what is built in.
    private(set) var exchanges = Exchange.all
    /// The sources of reference rates: those that are built in, and those that the configuration file describes.
    private(set) var rateSources = ReferenceRateSource.all

    /// Keys that have no effect.
    private(set) var warnings: [String] = []

    /// The values of the tables that describe them, by the name of the table and the key in it, without those that are built in.
    private(set) var descriptions: [String: [String: RawValue]] = [:]

    /// The directories with descriptions, the strongest last.
    private var directories: [String] = []
    /// The names of all exchanges that are described there, in order.
    var installed: [String] {
        let names = directories.flatMap { directory in
            ConfigurationFile.paths(in: directory).map { String($0.dropFirst(directory.count + 1).dropLast(5)) }
        }
        return Set(names).subtracting(["currencies"]).sorted()
    }

    /// Reads the configuration file, and of the other files those whose exchange or currency is named anywhere.
    /// - Parameter commandLine: Its configuration file must exist; the default one is optional.
    /// - Throws: ``SettingsError`` if a file can't be read, or a description is not valid.
    init(
        _ commandLine: DaemonCommandLine, environment: [String: String], uid: UInt32
    ) throws(SettingsError) {
        let path = commandLine.configurationPath ?? Directories.configurationPath(environment: environment, uid: uid)
        var file: ConfigurationFile?
        if let path {
            // One that is named must exist.
            var isRead = commandLine.configurationPath != nil
            if !isRead { isRead = try Directories.exists(path) }
            if isRead { file = try ConfigurationFile(path: path) }
        }
        let variables = environment.compactMap { name, text in
            SettingKey(variable: name).map { (key: $0, text: text) }
        }
        var named = Self.words(
            (file?.values.map(\.value) ?? []) + (commandLine.settings + variables).map { .text($0.text) })
        // `source.luno.url` names luno.
        let keys = (file?.values.map(\.name) ?? []) + (commandLine.settings + variables).map(\.key.name)
        named.formUnion(keys.compactMap { SettingKey.source(named: $0) })
        if case .tryExchange(let name, _) = commandLine.action { named.insert(name) }
        named.formUnion(Exchange.all.map(\.name))
        directories = Self.directories(configurationPath: path, environment: environment).reversed()
        if named.contains(where: { $0 != "USD" && Currency(rawValue: $0) != nil }) {
            for directory in directories { try takeCurrencies("\(directory)/currencies.toml", &named) }
        }
        for name in named.sorted() where Market.isVenueName(name) {
            for path in directories.map({ "\($0)/\(name).toml" }) {
                guard try Directories.exists(path) else { continue }
                let file = try ConfigurationFile(path: path)
                if let other = file.values.first(where: { Array($0.names.prefix(2)) != ["exchange", name] }) {
                    throw SettingsError(
                        "\(Origin.file(path: path, line: other.line)): \(other.name): this file may have the table [exchange.\(name)] only"
                    )
                }
                try take(file, path)
            }
        }
        if let path, let file { try take(file, path) }
    }

    /// Takes the default sources of the named currencies.
    private mutating func takeCurrencies(_ path: String, _ named: inout Set<String>) throws(SettingsError) {
        guard try Directories.exists(path) else { return }
        for entry in try ConfigurationFile(path: path).values {
            guard entry.names.count == 3, entry.names[0] == "currency", entry.names[2] == "sources" else {
                throw SettingsError(
                    "\(Origin.file(path: path, line: entry.line)): \(entry.name): this file may have currency.CODE.sources only"
                )
            }
            guard named.contains(entry.names[1]) else { continue }
            named.formUnion(Self.words([entry.value]))
            settings.append((entry, Origin.file(path: path, line: entry.line)))
        }
    }

    /// The words of texts and lists.
    private static func words(_ values: [RawValue]) -> Set<String> {
        var words: Set<String> = []
        for value in values {
            switch value {
            case .list(let texts): words.formUnion(texts)
            // Lists in the environment and on the command line.
            case .text(let text): words.formUnion(text.split { $0 == "," || $0 == " " }.map(String.init))
            case .integer, .flag, .other: break
            }
        }
        return words
    }

    /// A configuration file alone.
    init(_ file: ConfigurationFile?, path: String) throws(SettingsError) {
        if let file { try take(file, path) }
    }

    private mutating func take(_ file: ConfigurationFile, _ path: String) throws(SettingsError) {
        var indices = Dictionary(uniqueKeysWithValues: zip(exchanges.map(\.name), exchanges.indices))
        for (name, table) in file.tables(in: "exchange") {
            let exchange = Exchange(try ExchangeDescription(name, table))
            warnings += try ExchangeDescription.warnings(on: table).map { "\(path): exchange.\(name).\($0)" }
            if let index = indices[name] {
                exchanges[index] = exchange
            } else {
                indices[name] = exchanges.count
                exchanges.append(exchange)
            }
        }
        for (name, table) in file.tables(in: "reference-rate") {
            let source = try ReferenceRateSource(name, table)
            warnings += ReferenceRateSource.withoutEffect(table).map {
                "\(path): reference-rate.\(name).\($0) has no effect, and is ignored: rates are requested about four times a day"
            }
            rateSources.removeAll { $0.name == name }
            rateSources.append(source)
        }
        var tables: [String: [String: RawValue]] = [:]
        for entry in file.values {
            if ["exchange", "reference-rate"].contains(entry.names[0]), entry.names.count > 1 {
                let table = entry.names[..<2].joined(separator: ".")
                tables[table, default: [:]][ConfigurationFile.key(entry.names[2...])] = entry.value
            } else {
                settings.append((entry, Origin.file(path: path, line: entry.line)))
            }
        }
        descriptions.merge(tables) { $1 }
    }

    /// The directories with descriptions, the strongest first: beside the configuration file, then the system's (XDG Base Directories).
    private static func directories(configurationPath: String?, environment: [String: String]) -> [String] {
        let own = configurationPath.map { path in
            path.lastIndex(of: "/").map { "\(path[..<$0])/exchanges" } ?? "exchanges"
        }
        let data = environment["XDG_DATA_DIRS"].flatMap { $0.isEmpty ? nil : $0 } ?? "/usr/local/share:/usr/share"
        let system = data.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/btc-priced/exchanges" }
        return [own].compactMap(\.self) + system
    }
}
