import BTCPriceCore
import BTCPriceNetworking
import Configuration

/// One setting: name, type and default. The file, the environment and the command line are checked against the table ``all``.
struct SettingKey: Sendable {
    /// The type and range of a value.
    enum Kind: Sendable {
        case integer(ClosedRange<Int>)
        case flag
        case text(TextRule)
        case choice([String])
        case currencies
        case rateSources
        case sources(Currency)
    }

    /// The form of a text.
    enum TextRule: Sendable {
        case path
        case exchangeURL
        case streamURL
        case socketPath
        case proxyURL
        case logLevel
        case span
    }

    /// `source.binance.timeout-ms`
    let name: String
    let kind: Kind
    /// The default; `nil` if there is none or if it depends on the user.
    let standard: RawValue?
    /// The value in force of a setting that is not set and has no default; `nil` if there is none.
    var inForce: @Sendable (Settings) -> RawValue? = { _ in nil }
    /// An example for a setting that has no default.
    var example: RawValue?
    /// Whether it is read only at the start.
    var isFixed = false
    /// Its meaning, in sentences. Keys with the same text are described together.
    let text: String
    /// The first sentence of the text.
    var purpose: String { String(text[..<(text.start(of: ". ") ?? text.dropLast().endIndex)]) }

    /// `--source-binance-timeout-ms`
    var flag: String { "--" + name.replaced(".", by: "-") }
    /// `BTC_PRICED_SOURCE_BINANCE_TIMEOUT_MS`
    var variable: String {
        Self.variablePrefix + name.uppercased().replaced(".", by: "_").replaced("-", by: "_")
    }

    /// The default if these exchanges are in force, some of which may replace built-in ones; `nil` if there is none.
    func standard(among exchanges: [Exchange]) -> RawValue? {
        switch kind {
        case .sources(let currency):
            let names = Exchange.names(of: currency, among: exchanges)
            return standard == nil || names.isEmpty ? nil : .list(names)
        case .text(.exchangeURL):
            guard standard != nil, let exchange = exchanges.first(where: { $0.name == Self.source(named: name) })
            else { return nil }
            return .text(exchange.baseURL)
        default: return standard
        }
    }

    /// The allowed values as text: `From 100 to 3600000.`
    private var range: String? {
        switch kind {
        case .integer(let range): "From \(range.lowerBound) to \(range.upperBound)."
        case .currencies: "Codes of ISO 4217, each once."
        case .flag, .text, .choice, .sources, .rateSources: nil
        }
    }

    /// A configuration file with every setting, commented out. `Tests/generate` makes the tables of docs/configuration.md from it.
    static var standardFile: String {
        var text = """
            # The configuration of btc-priced(8); btc-priced.toml(5) explains it. Every key is listed with its default. To set a key,
            # remove the '#' and run 'systemctl reload btc-priced'.

            """
        for section in sections {
            text += "\n## \(section.heading)\n"
            var described = ""
            for key in section.keys {
                let restart = key.isFixed ? "A change takes effect at the next start." : nil
                let note = key.standard == nil ? "Not set by default; an example:" : nil
                let description = [key.text, key.range, restart, note].compactMap(\.self).joined(separator: " ")
                if description != described { text += "\n\(comment(description))" }
                described = description
                text += "#\(key.name) = \((key.standard ?? key.example)?.description ?? "")\n"
            }
        }
        return text
    }

    /// Lines of a comment with at most 120 columns.
    private static func comment(_ text: String) -> String {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + word.count < 118 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.map { "# \($0)\n" }.joined()
    }

    /// The prefix of every environment variable of the daemon.
    static let variablePrefix = "BTC_PRICED_"
    /// Variables with this prefix that are not the daemon's: the client reads the socket's path from `BTC_PRICED_SOCKET`.
    static let foreignVariables: Set<String> = ["BTC_PRICED_SOCKET"]
}

/// The settings of sources and currencies that are not built in: `source.<name>.socket`, `currency.BRL.sources`.
extension SettingKey {
    /// The settings that a source can have, whatever it is called.
    private static let partsOfSources = ["socket", "second-url", "url", "timeout-ms", "hedge-ms"]
    private static let partsOfCurrencies = ["sources", "interval-ms", "derive"]

    /// The setting of this name; `nil` if there is none.
    private static func unlisted(_ name: String) -> SettingKey? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { return nil }
        switch parts[0] {
        case "source" where isSourceName(parts[1]) && partsOfSources.contains(parts[2]):
            return key(parts[2], ofSource: parts[1])
        case "currency": return Currency(rawValue: parts[1]).flatMap { key(parts[2], of: $0) }
        default: return nil
        }
    }

    /// Whether a source that is not built in can have this name.
    static func isSourceName(_ name: String) -> Bool {
        Market.isVenueName(name) && name != Market.medianName
            && !Exchange.all.contains { $0.name == name }
    }

    /// The source that a key is about, which may not exist; `nil` if it is about none.
    static func source(named key: String) -> String? {
        let parts = key.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count > 1 && parts[0] == "source" ? String(parts[1]) : nil
    }

    /// The peer whose socket this is.
    var peer: String? { name.hasSuffix(".socket") ? Self.source(named: name) : nil }

    init?(named name: String) {
        guard let key = Self.known.first(where: { $0.name == name }) ?? Self.unlisted(name) else { return nil }
        self = key
    }

    /// The setting of this flag of the command line: `--source-alpha-socket`.
    init?(flag: String) {
        self.init(flag, prefix: "--", separator: "-", spelling: \.flag)
    }

    /// The setting of this environment variable: `BTC_PRICED_SOURCE_ALPHA_SOCKET`.
    init?(variable: String) {
        self.init(variable, prefix: Self.variablePrefix, separator: "_", spelling: \.variable)
    }

    private init?(_ text: String, prefix: String, separator: String, spelling: (SettingKey) -> String) {
        let named = Self.known.first { spelling($0) == text }
        let words = text.dropFirst(prefix.count).replaced(separator, by: "-").lowercased()
        // A flag does not show where the name ends.
        let others = [("source-", Self.partsOfSources), ("currency-", Self.partsOfCurrencies)].lazy.flatMap {
            group, parts in
            parts.lazy.compactMap { part -> SettingKey? in
                guard words.hasPrefix(group), words.hasSuffix("-\(part)"),
                    words.utf8.count > group.utf8.count + part.utf8.count + 1
                else { return nil }
                let name = words.dropFirst(group.count).dropLast(part.count + 1)
                return group == "source-"
                    ? Self.unlisted("source.\(name).\(part)") : Self.unlisted("currency.\(name.uppercased()).\(part)")
            }
        }
        guard let key = named ?? others.first(where: { spelling($0) == text }) else { return nil }
        self = key
    }
}
