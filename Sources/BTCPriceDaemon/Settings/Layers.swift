import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import CommandLine
import Configuration
import Logging

/// The values of the settings from all their places, the stronger overriding the weaker. Overridden values are checked too: an
/// invalid line in the file is an error at once, not only after the overriding variable is removed.
struct Layers {
    private let values: [String: (value: RawValue, origin: Origin)]
    /// The settings that are not listed in ``SettingKey/all``, and set.
    let unlisted: [SettingKey]
    /// Settings that have gone, and environment variables with the daemon's prefix that are probably not meant for it.
    let warnings: [String]
    let exchanges: [Exchange]
    private let exchangesByName: [String: Exchange]
    private let files: ConfigurationFiles
    /// The names of the exchanges that are described in files, whether they are used or not.
    var installed: [String] { files.installed }
    let rateSources: [ReferenceRateSource]
    /// The tables that describe exchanges and sources of reference rates.
    let descriptions: [String: [String: RawValue]]

    /// - Throws: ``SettingsError`` for an unknown key or an invalid value.
    init(
        commandLine: DaemonCommandLine, environment: [String: String], files: ConfigurationFiles
    ) throws(SettingsError) {
        exchanges = files.exchanges
        exchangesByName = Dictionary(uniqueKeysWithValues: exchanges.map { ($0.name, $0) })
        self.files = files
        rateSources = files.rateSources
        descriptions = files.descriptions
        var warnings = files.warnings
        var settings: [(key: SettingKey, value: RawValue, origin: Origin)] = []
        for (entry, origin) in files.settings {
            let (name, value) = (entry.name, entry.value)
            if entry.names.first == "currency", entry.names.count == 3,
                let successor = Currency.successor(of: entry.names[1])
            {
                warnings.append(
                    "\(origin): \(name): \(entry.names[1]) was replaced by \(successor), and the key is ignored: write currency.\(successor).\(entry.names[2])"
                )
                continue
            }
            guard let key = SettingKey(named: name) else {
                if value == .other("table"), SettingKey.all.contains(where: { $0.name.hasPrefix("\(name).") }) {
                    continue
                }
                throw Self.unknown(name, value, origin, exchanges)
            }
            settings.append((key, value, origin))
        }
        for (name, text) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(SettingKey.variablePrefix) && !SettingKey.foreignVariables.contains(name) {
            guard let key = SettingKey(variable: name) else {
                let words = name.dropFirst(SettingKey.variablePrefix.count).split(separator: "_")
                if words.first == "CURRENCY", words.count > 2, let successor = Currency.successor(of: String(words[1]))
                {
                    warnings.append(
                        "the environment: \(name): \(words[1]) was replaced by \(successor), and the variable is ignored"
                    )
                    continue
                }
                let advice = Suggestion.advice(
                    on: name, among: SettingKey.all.map(\.variable), prefix: SettingKey.variablePrefix)
                // Kubernetes and Docker set variables such as BTC_PRICED_PORT for a service called btc-priced.
                guard advice.isEmpty else {
                    throw SettingsError("the environment: \(name) is not a setting of btc-priced\(advice)")
                }
                warnings.append("the environment: \(name) is not a setting of btc-priced, and is ignored")
                continue
            }
            settings.append((key, .text(text), .environment(variable: name)))
        }
        for (key, text) in commandLine.settings { settings.append((key, .text(text), .commandLine(flag: key.flag))) }

        settings = settings.compactMap { key, value, origin in
            let gone = GoneSetting.all.first { $0.key == key.name && ($0.values.map { $0.gone == value } ?? true) }
            guard let gone else { return (key, value, origin) }
            warnings.append("\(origin): \(gone.warning)")
            return gone.values.map { (key, $0.now, origin) }
        }
        settings = settings.map { key, value, origin in
            guard case .currencies = key.kind, case .list(let codes) = origin.isFile ? value : key.typed(value) else {
                return (key, value, origin)
            }
            var kept: [String] = []
            for code in codes {
                let successor = Currency.successor(of: code)
                if let successor {
                    warnings.append("\(origin): \(key.name): \(code) was replaced by \(successor): write that")
                }
                // A code that is there twice is an error, but not because of this.
                if successor.map({ !codes.contains($0.rawValue) && !kept.contains($0.rawValue) }) ?? true {
                    kept.append(successor?.rawValue ?? code)
                }
            }
            return (key, origin.isFile ? .list(kept) : .text(kept.joined(separator: ",")), origin)
        }
        self.warnings = warnings
        let listed = Set(SettingKey.all.map(\.name))
        unlisted = Set(settings.map(\.key.name)).subtracting(listed).sorted().compactMap(SettingKey.init(named:))
        let peers = unlisted.compactMap(\.peer)
        let namesOfPeers = Set(peers)
        var values: [String: (value: RawValue, origin: Origin)] = [:]
        for key in SettingKey.all {
            if let standard = key.standard(among: exchanges) { values[key.name] = (standard, .standard) }
        }
        for (key, value, origin) in settings {
            values[key.name] = (
                try key.checked(value, origin, peers: peers, exchanges, rateSources, installed: files.installed), origin
            )
        }
        self.values = values
        let used = try list("sources")
        for key in unlisted {
            guard let name = SettingKey.source(named: key.name), let (value, origin) = values[key.name] else {
                continue
            }
            if key.peer == nil, namesOfPeers.contains(name) {
                let part = key.name.dropFirst("source.\(name).".count)
                throw SettingsError("\(origin): \(key.name): \(name) is a peer, and has no \(part): remove the key")
            }
            if key.peer == nil, exchangesByName[name] == nil {
                throw Self.unknown(key.name, value, origin, exchanges)
            }
            if key.peer != nil, exchangesByName[name] != nil {
                throw SettingsError(
                    "\(origin): \(key.name): \(name) is an exchange, by its description: give the peer another name")
            }
            if key.peer != nil, !used.contains(name) {
                throw SettingsError("\(origin): \(key.name) is set, but sources does not name \(name): add it there")
            }
        }
    }

    func exchange(_ name: String) -> Exchange? { exchangesByName[name] }

    func value(_ name: String) -> (value: RawValue, origin: Origin)? {
        values[name]
    }

    func integer(_ name: String) throws(SettingsError) -> Int {
        guard case .integer(let number)? = values[name]?.value else { throw SettingsError("\(name) is not set") }
        return number
    }

    func flag(_ name: String) throws(SettingsError) -> Bool {
        guard case .flag(let isOn)? = values[name]?.value else { throw SettingsError("\(name) is not set") }
        return isOn
    }

    func text(_ name: String) throws(SettingsError) -> String? {
        guard case .text(let text)? = values[name]?.value else { return nil }
        return text
    }

    func list(_ name: String) throws(SettingsError) -> [String] {
        guard case .list(let elements)? = values[name]?.value else { throw SettingsError("\(name) is not set") }
        return elements
    }

    private static func unknown(
        _ name: String, _ value: RawValue, _ origin: Origin, _ exchanges: [Exchange]
    ) -> SettingsError {
        let sources = exchanges.map(\.name)
        let parts = name.split(separator: ".")
        if parts.first == "source", parts.count == 3, !sources.contains(String(parts[1])) {
            let peer =
                SettingKey.isSourceName(String(parts[1]))
                ? "; a peer has source.\(parts[1]).socket, and another exchange has a table [exchange.\(parts[1])]" : ""
            return SettingsError(
                "\(origin): \(name): there is no source '\(parts[1])'; there are \(sources.joined(separator: ", "))\(peer)"
            )
        }
        return SettingsError("\(origin): unknown key \(name) (its value is \(value)); \(advice(on: name, origin))")
    }

    private static func advice(on name: String, _ origin: Origin) -> String {
        let known = SettingKey.all.map(\.name)
        let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
        switch name {
        case "currency.USD.sources": return "the key of the price in USD is sources"
        case "currency.USD.derive", "currency.EUR.derive": return "a price in EUR or USD is never derived"
        default: break
        }
        // In TOML, a key below a table's heading belongs to that table.
        if case .file = origin, parts.count == 2, known.contains(parts[1]) {
            return "move \(parts[1]) above [\(parts[0])], which is the beginning of a table"
        }
        return Suggestion.nearest(to: name, among: known).map { "did you mean \($0)?" }
            ?? "--print-config shows every key there is"
    }
}

extension SettingKey {
    /// The value in the setting's type, or an error with the allowed values.
    /// - Parameters:
    ///   - peers: The names of the peers. They have the price in USD.
    ///   - rateSources: The sources of reference rates.
    ///   - installed: The names of the exchanges that are described in files.
    func checked(
        _ raw: RawValue, _ origin: Origin, peers: [String], _ exchanges: [Exchange],
        _ rateSources: [ReferenceRateSource], installed: @autoclosure () -> [String]
    ) throws(SettingsError) -> RawValue {
        let value = origin.isFile ? raw : typed(raw)
        func refused(_ allowed: String) -> SettingsError { SettingsError(origin, name, raw, allowed: allowed) }
        func checkList(
            _ allowed: String, mayBeEmpty: Bool = false, suggested: @autoclosure () -> [String] = [],
            isKnown: (String) -> Bool
        ) throws(SettingsError) {
            guard case .list(let names) = value else { throw refused(allowed) }
            if let unknown = names.first(where: { !isKnown($0) }) {
                throw refused(allowed + Suggestion.advice(on: unknown, among: suggested()))
            }
            guard mayBeEmpty || !names.isEmpty, Set(names).count == names.count else { throw refused(allowed) }
        }
        switch kind {
        case .integer(let range):
            guard case .integer(let number) = value, range.contains(number) else {
                throw refused("a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
        case .flag:
            guard case .flag = value else { throw refused("true or false") }
        case .text(let rule):
            guard case .text(let text) = value, rule.allows(text) else { throw refused(rule.allowed) }
        case .choice(let words):
            guard case .text(let text) = value, words.contains(text) else {
                throw refused("one of \(words.joined(separator: ", "))")
            }
        case .currencies:
            try checkList("a list of one or more codes of currencies, such as \"EUR\", each once") {
                Currency(rawValue: $0) != nil
            }
        case .rateSources:
            let known = rateSources.map(\.name)
            try checkList(
                "a list of \(known.joined(separator: ", ")), each once, which may be empty", mayBeEmpty: true,
                suggested: known, isKnown: known.contains)
        case .sources(let currency):
            let known = exchanges.filter { $0.markets[currency] != nil }.map(\.name) + (currency == .usd ? peers : [])
            let allowed = "a list of one or more of \(known.joined(separator: ", ")), each once"
            try checkList(
                known.isEmpty ? "left out: no exchange has a market in \(currency)" : allowed,
                suggested: known + installed(), isKnown: known.contains)
        }
        return value
    }

    /// A text of the environment or the command line in the type of the setting; unchanged if it can't be one.
    fileprivate func typed(_ raw: RawValue) -> RawValue {
        guard case .text(let text) = raw else { return raw }
        switch kind {
        case .integer: return Int(text).map { .integer($0) } ?? raw
        case .flag: return Bool(text).map { .flag($0) } ?? raw
        case .currencies, .rateSources, .sources:
            return .list(text.split(separator: ",").map { $0.filter { !$0.isWhitespace } })
        case .text, .choice: return raw
        }
    }
}

extension Origin {
    fileprivate var isFile: Bool {
        if case .file = self { true } else { false }
    }
}

extension SettingKey.TextRule {
    fileprivate func allows(_ text: String) -> Bool {
        switch self {
        case .path: text.hasPrefix("/") && !text.utf8.contains(0)
        case .socketPath: text.hasPrefix("/") && UnixSocketAddress(path: text) != nil
        case .exchangeURL: URLRule.isExchange(text)
        case .streamURL: URLRule.isStream(text)
        case .proxyURL: URLRule.proxy(text) != nil
        case .logLevel: Logger.Level(rawValue: text) != nil
        case .span: Settings.span(text) != nil
        }
    }

    fileprivate var allowed: String {
        switch self {
        case .path: "an absolute path"
        case .socketPath: "an absolute path of at most 107 bytes"
        case .exchangeURL: "an address like https://host, without user, query and fragment"
        case .streamURL: "an address like wss://host or ws://host:port, without a path"
        case .proxyURL: "http://host:port or socks5://host:port"
        case .span: "a number of days or years, such as 90d or 10y, at most 100y, or forever"
        case .logLevel: "one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))"
        }
    }
}
