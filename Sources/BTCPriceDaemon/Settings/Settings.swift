import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Configuration
import Logging

/// All settings, checked and typed.
struct Settings: Sendable {
    struct Source: Sendable {
        let name: String
        /// `nil` for a peer: another daemon.
        let exchange: Exchange?
        /// The base URL of its requests, or the path of a peer's socket.
        let address: String
        /// The URL that is used if ``address`` refuses this region.
        var secondURL: String?
        let timeout: Duration
        let hedge: Duration
        /// The addresses of its stream, the preferred one first; none if it has no stream.
        var streamURLs: [String] = []
        /// The source is requested only after no other source has had a price for this time; `nil` if it is requested from the start.
        var reserve: Duration?
    }

    struct CurrencySettings: Sendable {
        let currency: Currency
        /// In their order; none if the price is always derived.
        let sources: [Source]
        let interval: Duration
        let rules: SelectionRules
        let derivation: DerivationPolicy
        /// The currencies that need this one, which is not configured, because their prices are derived from it.
        var neededBy: [Currency] = []
    }

    /// A setting in force, for `--print-config`.
    struct Entry: Sendable {
        let name: String
        let value: RawValue?
        let origin: Origin
    }

    /// The currencies in their order; at least one.
    let currencies: [CurrencySettings]
    /// The sources of reference rates, in their order; none if they are not needed.
    let rateSources: [ReferenceRateSource]
    /// Every source of reference rates that may be named.
    let allRateSources: [ReferenceRateSource]
    /// Every exchange that can be a source.
    let exchanges: [Source]
    /// The names of the exchanges that are described in files, whether they are used or not.
    var installed: [String] { layers.installed }
    private let layers: Layers
    let budget: Duration
    /// The time between two requests of the observer.
    let observeInterval: Duration
    /// The minimum time between two changes of the price that are published between the ticks; `nil` if streams are never opened.
    let changeInterval: Duration?
    /// The time without a client after which the ticks stop; `nil` for never.
    let pauseWhenIdle: Duration?
    /// `nil` if no history is kept.
    let history: HistoryStore.Settings?
    /// Whether gaps of the history are filled with the exchanges' candles.
    let fillsHistory: Bool
    let directories: Directories
    let socketPath: String
    let limits: ServerLimits
    let caFile: String?
    let proxy: HTTPTransportSettings.Proxy?
    let logLevel: Logger.Level
    /// The settings in their order, with what sets them.
    private let rows: [(key: SettingKey, value: RawValue?, origin: Origin)]
    /// The tables that describe exchanges and sources of reference rates: their values, by the name of the table and the key in it.
    let descriptions: [String: [String: RawValue]]
    /// What is set and does not mean what it says, for people.
    private(set) var warnings: [String]

    /// Reads the settings from all their places.
    /// - Throws: ``SettingsError`` for the first setting that is unknown or invalid.
    static func read(
        commandLine: DaemonCommandLine, environment: [String: String], uid: UInt32
    ) throws(SettingsError) -> Settings {
        let files = try ConfigurationFiles(commandLine, environment: environment, uid: uid)
        return try Settings(
            Layers(commandLine: commandLine, environment: environment, files: files), environment: environment, uid: uid
        )
    }

    init(_ layers: Layers, environment: [String: String], uid: UInt32) throws(SettingsError) {
        let standardDirectories = Directories.standard(environment: environment, uid: uid)
        self.layers = layers
        budget = .milliseconds(try layers.integer("tick.budget-ms"))
        let rules = SelectionRules(
            mode: try layers.text("mode").flatMap(PriceMode.init(rawValue:)) ?? .primary,
            quorum: try layers.integer("quorum"),
            peg: try layers.text("currency.usdt").flatMap(PegPolicy.init(rawValue:)) ?? .warn)
        currencies = try Self.currencies(layers, rules)
        allRateSources = layers.rateSources
        descriptions = layers.descriptions
        warnings = layers.warnings
        let names = try layers.list("reference-rates")
        if names.isEmpty, let derived = currencies.first(where: { $0.derivation == .always }) {
            throw SettingsError(
                "reference-rates = []: the price in \(derived.currency) is derived with a reference rate: name a source of them, or leave \(derived.currency) out of currencies"
            )
        }
        rateSources =
            currencies.count > 1 ? names.compactMap { name in layers.rateSources.first { $0.name == name } } : []
        exchanges = try Self.sources(layers, layers.exchanges.map(\.name))
        // A price that is always derived has no sources.
        if rules.mode == .median, let first = currencies.first, first.derivation != .always,
            case let count = first.sources.count(where: { $0.reserve == nil }), rules.quorum > count
        {
            throw SettingsError(
                "quorum = \(rules.quorum): must be at most \(count), as many as there are sources")
        }
        observeInterval = .milliseconds(try layers.integer("validation.observe-interval-ms"))
        let interval = Duration.milliseconds(try layers.integer("watch.min-interval-ms"))
        changeInterval = try layers.text("streams") == "never" ? nil : interval
        let idle = try layers.integer("tick.pause-when-idle")
        pauseWhenIdle = idle > 0 ? .seconds(idle) : nil
        history = try Self.history(layers)
        fillsHistory = try layers.flag("history.backfill")
        guard let state = try layers.text("state.directory") ?? standardDirectories.state else {
            throw SettingsError("state.directory is not set, and there is no HOME to put it into: set one of the two")
        }
        directories = Directories(
            state: state, runtime: try layers.text("runtime.directory") ?? standardDirectories.runtime)
        guard directories.state != directories.runtime else {
            throw SettingsError(
                "state.directory and runtime.directory are both \(directories.state): each keeps a copy of the last price, so set two different directories"
            )
        }
        socketPath = try layers.text("socket.path") ?? "\(directories.runtime)/\(Product.socketName)"
        guard UnixSocketAddress(path: socketPath) != nil else {
            throw SettingsError(
                "runtime.directory = \(RawValue.text(directories.runtime)): the path of the socket in it is longer than 107 bytes: set a shorter one, or socket.path"
            )
        }
        limits = try Self.limits(layers)
        let connections = try layers.integer("clients.connections")
        if connections > limits.connections {
            warnings.append(
                "clients.connections = \(connections): \(limits.connections) are used, three quarters of the \(ServerLimits.descriptors) file descriptors without the reserve: raise LimitNOFILE= of the unit, or 'ulimit -n'"
            )
        }
        caFile = try layers.text("tls.ca-file")
        proxy = try layers.text("proxy.url").flatMap(URLRule.proxy)
        logLevel = try layers.text("log.level").flatMap(Logger.Level.init(rawValue:)) ?? .info

        rows = (SettingKey.all + layers.unlisted).map { key in
            layers.value(key.name).map { (key, $0.value, $0.origin) } ?? (key, nil, .standard)
        }
    }

    /// All settings with the values in force.
    var entries: [Entry] {
        rows.map { Entry(name: $0.key.name, value: $0.value ?? $0.key.inForce(self), origin: $0.origin) }
    }

    /// The names of the settings, in their order.
    var names: [String] { rows.map(\.key.name) }

    /// The values by the names of the settings, without those that depend on others.
    var values: [String: RawValue?] { Dictionary(uniqueKeysWithValues: rows.map { ($0.key.name, $0.value) }) }

    /// A configured source by its name.
    func source(_ name: String) -> Source? { sources.first { $0.name == name } }

    /// The first currency. It applies if a client names none.
    var first: CurrencySettings { currencies[0] }

    var intervals: [OneSecondTicker.Interval] { currencies.map { .init($0.currency, $0.interval) } }

    /// The sources of all currencies, each once.
    var sources: [Source] {
        currencies.flatMap(\.sources).reduce(into: []) { sources, source in
            if !sources.contains(where: { $0.name == source.name }) { sources.append(source) }
        }
    }

    /// All settings with their origins, as a valid configuration file.
    var listing: String {
        entries.map { entry in
            guard let value = entry.value else { return "# \(entry.name) is not set\n" }
            return "\(entry.name) = \(value)  # \(entry.origin)\n"
        }.joined()
            + descriptions.sorted { $0.key < $1.key }.map { table, values in
                values.sorted { $0.key < $1.key }.map { "\(table).\($0) = \($1)\n" }.joined()
            }.joined()
    }

    private static func history(_ layers: Layers) throws(SettingsError) -> HistoryStore.Settings? {
        guard try layers.flag("history.enabled") else { return nil }
        return HistoryStore.Settings(
            keepMinutes: try layers.text("history.keep-minutes").flatMap(span) ?? nil,
            writeEvery: .seconds(try layers.integer("history.write-every-s")))
    }

    /// Reads a span of time: `90d`, `10y`, `forever`.
    /// - Returns: The span, which is itself `nil` for `forever`; `nil` if the text is not a valid span.
    static func span(_ text: String) -> Duration?? {
        if text == "forever" { return .some(nil) }
        let days: Int? = text.last == "d" ? 1 : text.last == "y" ? 366 : nil
        guard let days, let number = Int(text.dropLast()), number > 0, number <= 36_600 / days else { return nil }
        return .seconds(number * days * 86_400)
    }

    private static func limits(_ layers: Layers) throws(SettingsError) -> ServerLimits {
        var limits = ServerLimits.fitting()
        let connections = try layers.integer("clients.connections")
        if connections > 0 { limits = ServerLimits(connections: min(connections, limits.connections)) }
        limits.queuedBytes = try layers.integer("clients.queued-mib") << 20
        limits.timeout = .seconds(try layers.integer("clients.timeout-s"))
        return limits
    }

    /// The waits for a described exchange, and for a peer's first message. A peer's later ones are not waited for.
    private static let (standardTimeout, standardHedge) = (Duration.milliseconds(800), Duration.milliseconds(400))

    private static func currencies(
        _ layers: Layers, _ rules: SelectionRules
    ) throws(SettingsError) -> [CurrencySettings] {
        var currencies: [CurrencySettings] = []
        for code in try layers.list("currencies") {
            guard let currency = Currency(rawValue: code) else { continue }
            currencies.append(try settings(of: currency, isFirst: currencies.isEmpty, layers, rules))
        }
        for derived in currencies {
            // By default, a currency with a market costs no requests for another one.
            let isWanted = derived.derivation == .fallback && layers.value("currency.\(derived.currency).derive") != nil
            guard derived.derivation == .always || isWanted, let nearest = derived.currency.nearest else { continue }
            if let index = currencies.firstIndex(where: { $0.currency == nearest }) {
                if !currencies[index].neededBy.isEmpty { currencies[index].neededBy.append(derived.currency) }
            } else {
                var needed = try settings(of: nearest, isFirst: false, layers, rules)
                needed.neededBy = [derived.currency]
                currencies.append(needed)
            }
        }
        return currencies
    }

    private static func settings(
        of currency: Currency, isFirst: Bool, _ layers: Layers, _ rules: SelectionRules
    ) throws(SettingsError) -> CurrencySettings {
        let list = currency == .usd ? "sources" : "currency.\(currency).sources"
        let derive = "currency.\(currency).derive"
        let policy = try layers.text(derive).flatMap(DerivationPolicy.init(rawValue:))
        let hasSources = layers.value(list) != nil
        let derivation: DerivationPolicy =
            currency.nearest == nil ? .never : policy ?? (hasSources ? .fallback : .always)
        var sources = hasSources && derivation != .always ? try Self.sources(layers, try layers.list(list)) : []
        if sources.isEmpty, derivation != .always {
            throw SettingsError(
                "currencies: \(currency) has no sources: set currency.\(currency).sources to exchanges with such a market, describe one (docs/exchanges.md), or leave currency.\(currency).derive out"
            )
        }
        if currency == .usd, try layers.flag("fleet.fallback") { sources += try reserves(layers, of: sources) }
        let key = "currency.\(currency).interval-ms"
        var interval = isFirst ? try layers.integer("tick.interval-ms") : 10_000
        if layers.value(key) != nil { interval = try layers.integer(key) }
        var rules = rules
        // A quorum above the number of the first currency's sources is an error. For other currencies it is lowered.
        if !isFirst { rules.quorum = max(1, min(rules.quorum, sources.count)) }
        return CurrencySettings(
            currency: currency, sources: sources, interval: .milliseconds(interval), rules: rules,
            derivation: derivation)
    }

    /// The exchanges that are requested if no peer has a price for 5 to 10 minutes; random, so that a fleet does not request all at once.
    private static func reserves(_ layers: Layers, of sources: [Source]) throws(SettingsError) -> [Source] {
        if let exchange = sources.first(where: { $0.exchange != nil }) {
            throw SettingsError(
                "fleet.fallback = true: sources may name peers only, but \(exchange.name) is an exchange: it is requested anyway"
            )
        }
        let reserve = Duration.seconds(.random(in: 300...600))
        return try Self.sources(layers, Exchange.names(of: .usd, among: layers.exchanges)).map { source in
            var source = source
            source.reserve = reserve
            return source
        }
    }

    private static func sources(_ layers: Layers, _ names: [String]) throws(SettingsError) -> [Source] {
        var sources: [Source] = []
        for name in names {
            if let socket = try layers.text("source.\(name).socket") {
                sources.append(
                    Source(name: name, exchange: nil, address: socket, timeout: standardTimeout, hedge: standardHedge))
                continue
            }
            guard let exchange = layers.exchange(name) else { continue }
            let url = URLRule.withoutTrailingSlash(try layers.text("source.\(name).url") ?? exchange.baseURL)
            // If the user sets a URL, the exchange's second one is not used.
            let second =
                try layers.text("source.\(name).second-url")
                ?? (url == exchange.baseURL ? exchange.secondURL : nil)
            sources.append(
                Source(
                    name: name, exchange: exchange, address: url,
                    secondURL: second.map { URLRule.withoutTrailingSlash($0) },
                    timeout: try milliseconds("source.\(name).timeout-ms", layers) ?? standardTimeout,
                    hedge: try milliseconds("source.\(name).hedge-ms", layers) ?? standardHedge,
                    streamURLs: try streamURLs(layers, exchange, isElsewhere: url != exchange.baseURL)))
        }
        return sources
    }

    /// The addresses of an exchange's stream. An exchange that is requested at another URL has none, unless the user sets it.
    private static func streamURLs(
        _ layers: Layers, _ exchange: Exchange, isElsewhere: Bool
    ) throws(SettingsError) -> [String] {
        if exchange.streamURLs.isEmpty { return [] }
        let url = try layers.text("source.\(exchange.name).stream-url")
        return url.map { [URLRule.withoutTrailingSlash($0)] } ?? (isElsewhere ? [] : exchange.streamURLs)
    }

    private static func milliseconds(_ key: String, _ layers: Layers) throws(SettingsError) -> Duration? {
        layers.value(key) == nil ? nil : .milliseconds(try layers.integer(key))
    }
}
