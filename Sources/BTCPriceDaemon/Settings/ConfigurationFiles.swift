import BTCPriceNetworking
import Configuration

/// The configuration file, and the files that describe exchanges.
struct ConfigurationFiles {
    /// The settings, the stronger ones after the weaker ones.
    private(set) var settings: [(entry: ConfigurationFile.Entry, origin: Origin)] = []
    /// The exchanges that can be sources: those that are built in, and those that are described. A description with the name of another
    /// one replaces it whole: the configuration file's is the strongest, then those of the directories, then what is built in.
    private(set) var exchanges = Exchange.all

    /// Reads all files.
    /// - Parameter given: The configuration file of the command line. It must exist; the default one is optional.
    /// - Throws: ``SettingsError`` if a file can't be read, or a description is not valid.
    init(_ given: String?, _ environment: [String: String], uid: UInt32) throws(SettingsError) {
        let path = given ?? Directories.configurationPath(environment: environment, uid: uid)
        for directory in Self.directories(configurationPath: path, environment: environment).reversed() {
            for path in ConfigurationFile.paths(in: directory) {
                let file = try ConfigurationFile(path: path)
                let other = file.values.first { entry in
                    entry.names.first != "exchange"
                        && !(entry.names.count == 3 && entry.name.hasPrefix("currency.") && entry.names[2] == "sources")
                }
                if let other {
                    throw SettingsError(
                        "\(Origin.file(path: path, line: other.line)): \(other.name): this file may have tables [exchange.NAME], and currency.CODE.sources"
                    )
                }
                try take(file, path)
            }
        }
        guard let path, given != nil || Directories.exists(path) else { return }
        try take(try ConfigurationFile(path: path), path)
    }

    /// A configuration file alone.
    init(_ file: ConfigurationFile?, path: String) throws(SettingsError) {
        if let file { try take(file, path) }
    }

    private mutating func take(_ file: ConfigurationFile, _ path: String) throws(SettingsError) {
        for (name, table) in file.tables(in: "exchange") {
            let exchange = Exchange(try ExchangeDescription(name, table))
            if let index = exchanges.firstIndex(where: { $0.name == name }) {
                exchanges[index] = exchange
            } else {
                exchanges.append(exchange)
            }
        }
        settings += file.values.filter { $0.names.first != "exchange" || $0.names.count == 1 }
            .map { ($0, Origin.file(path: path, line: $0.line)) }
    }

    /// The directories with descriptions, the strongest first: the one next to the configuration file, and those of the system (XDG Base
    /// Directory Specification).
    private static func directories(configurationPath: String?, environment: [String: String]) -> [String] {
        let own = configurationPath.map { path in
            path.lastIndex(of: "/").map { "\(path[..<$0])/exchanges" } ?? "exchanges"
        }
        let data = environment["XDG_DATA_DIRS"].flatMap { $0.isEmpty ? nil : $0 } ?? "/usr/local/share:/usr/share"
        let system = data.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/btc-priced/exchanges" }
        return [own].compactMap(\.self) + system
    }
}
