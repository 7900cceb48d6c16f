import BTCPriceCore
import BTCPriceNetworking
import Logging

/// The values of the settings from all their places, the stronger overriding the weaker. Overridden values are checked too: an
/// invalid line in the file is an error at once, not only after the overriding variable is removed.
struct Layers {
    private let values: [String: (value: RawValue, origin: Origin)]

    /// - Throws: ``SettingsError`` for an unknown key or an invalid value.
    init(
        commandLine: DaemonCommandLine, environment: [String: String], file: (file: ConfigurationFile, path: String)?
    ) throws(SettingsError) {
        let keys = Dictionary(uniqueKeysWithValues: SettingKey.all.map { ($0.name, $0) })
        var values: [String: (value: RawValue, origin: Origin)] = [:]
        func set(_ key: SettingKey, _ raw: RawValue, _ origin: Origin) throws(SettingsError) {
            values[key.name] = (try key.checked(raw, origin), origin)
        }
        for key in keys.values {
            if let standard = key.standard { values[key.name] = (standard, .standard) }
        }
        for (name, value, line) in file?.file.values ?? [] {
            let origin = Origin.file(path: file?.path ?? "", line: line)
            guard let key = keys[name] else {
                if value == .other("table"), SettingKey.all.contains(where: { $0.name.hasPrefix("\(name).") }) {
                    continue
                }
                throw Self.unknown(name, value, origin)
            }
            try set(key, value, origin)
        }
        let variables = Dictionary(uniqueKeysWithValues: SettingKey.all.map { ($0.variable, $0) })
        for (name, text) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(SettingKey.variablePrefix) && !SettingKey.foreignVariables.contains(name) {
            guard let key = variables[name] else {
                throw SettingsError("the environment: \(name) is no setting of btc-priced")
            }
            try set(key, .text(text), .environment(variable: name))
        }
        for (key, text) in commandLine.settings { try set(key, .text(text), .commandLine(flag: key.flag)) }
        self.values = values
    }

    func value(_ name: String) -> (value: RawValue, origin: Origin)? {
        values[name]
    }

    func integer(_ name: String) throws(SettingsError) -> Int {
        guard case .integer(let number)? = values[name]?.value else { throw SettingsError("\(name) is not set") }
        return number
    }

    func text(_ name: String) throws(SettingsError) -> String? {
        guard case .text(let text)? = values[name]?.value else { return nil }
        return text
    }

    func sources() throws(SettingsError) -> [String] {
        guard case .list(let names)? = values["sources"]?.value else { throw SettingsError("sources is not set") }
        return names
    }

    private static func unknown(_ name: String, _ value: RawValue, _ origin: Origin) -> SettingsError {
        let sources = Exchange.all.map(\.name)
        let parts = name.split(separator: ".")
        if parts.first == "source", parts.count == 3, !sources.contains(String(parts[1])) {
            return SettingsError(
                "\(origin): \(name): there is no source '\(parts[1])'; there are \(sources.joined(separator: ", "))")
        }
        return SettingsError(
            "\(origin): unknown key \(name) (its value is \(value)); --print-config shows every key there is")
    }
}

extension SettingKey {
    /// The value in the setting's type, or an error with the allowed values.
    func checked(_ raw: RawValue, _ origin: Origin) throws(SettingsError) -> RawValue {
        switch kind {
        case .integer(let range):
            let allowed = "a whole number from \(range.lowerBound) to \(range.upperBound)"
            guard let number = raw.wholeNumber(fromText: !origin.isFile), range.contains(number) else {
                throw SettingsError(origin, name, raw, allowed: allowed)
            }
            return .integer(number)
        case .text(let rule):
            guard case .text(let text) = raw, rule.allows(text) else {
                throw SettingsError(origin, name, raw, allowed: rule.allowed)
            }
            return raw
        case .choice(let words):
            guard case .text(let text) = raw, words.contains(text) else {
                throw SettingsError(origin, name, raw, allowed: "one of \(words.joined(separator: ", "))")
            }
            return raw
        case .sources:
            let known = Exchange.all.map(\.name)
            let names: [String]
            switch raw {
            case .list(let elements): names = elements
            case .text(let text) where !origin.isFile:
                names = text.split(separator: ",").map { $0.filter { !$0.isWhitespace } }
            default: names = []
            }
            guard !names.isEmpty, names.allSatisfy(known.contains), Set(names).count == names.count else {
                throw SettingsError(
                    origin, name, raw, allowed: "a list of one or more of \(known.joined(separator: ", ")), each once")
            }
            return .list(names)
        }
    }
}

extension RawValue {
    fileprivate func wholeNumber(fromText: Bool) -> Int? {
        switch self {
        case .integer(let number): number
        case .text(let text) where fromText: Int(text)
        default: nil
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
        case .exchangeURL: URLRule.isExchange(text)
        case .proxyURL: URLRule.proxy(text) != nil
        case .logLevel: Logger.Level(rawValue: text) != nil
        }
    }

    fileprivate var allowed: String {
        switch self {
        case .path: "an absolute path"
        case .exchangeURL: "an address like https://host, without user, query and fragment"
        case .proxyURL: "http://host:port or socks5://host:port"
        case .logLevel: "one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))"
        }
    }
}
