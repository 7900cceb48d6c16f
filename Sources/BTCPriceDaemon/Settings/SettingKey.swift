import BTCPriceCore
import BTCPriceNetworking

/// One setting: its name in the file, its type and its default. The file, the environment and the command line are checked against
/// the table ``all``.
struct SettingKey: Sendable {
    /// The type and range of a value.
    enum Kind: Sendable {
        case integer(ClosedRange<Int>)
        /// `true` or `false`.
        case flag
        case text(TextRule)
        case choice([String])
        /// A list of currencies.
        case currencies
        /// A list of sources of a currency.
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
    /// Its purpose, in one line.
    let summary: String

    /// `--source-binance-timeout-ms`
    var flag: String { "--" + name.replacing(".", with: "-") }
    /// `BTC_PRICED_SOURCE_BINANCE_TIMEOUT_MS`
    var variable: String {
        Self.variablePrefix + name.uppercased().replacing(".", with: "_").replacing("-", with: "_")
    }

    /// The allowed values as text: `100 to 3600000.`
    private var range: String? {
        switch kind {
        case .integer(let range): "\(range.lowerBound) to \(range.upperBound)."
        case .choice(let words): "\(words.map { "\"\($0)\"" }.joined(separator: ", "))."
        case .currencies: "One or more of \(Currency.allCases.map { "\"\($0)\"" }.joined(separator: ", "))."
        case .flag: "true or false."
        case .text, .sources: nil
        }
    }

    /// A configuration file with every setting, its purpose and its default, all commented out.
    static var standardFile: String {
        let head = """
            # The configuration of btc-priced(8); btc-priced.toml(5) explains it. Every key is listed with its default. To set a key,
            # remove the '#' and run 'systemctl reload btc-priced'.

            """
        return head
            + all.map { key in
                let comment = "\n# \(key.summary)\(key.range.map { " \($0)" } ?? "")\n"
                return comment + "#\(key.name) = \(key.standard?.description ?? key.placeholder)\n"
            }.joined()
    }

    /// An example for a setting that has no default, or whose default depends on the user.
    private var placeholder: String {
        switch name {
        case "state.directory": "\"/var/lib/btc-priced\""
        case "runtime.directory": "\"/run/btc-priced\""
        case "socket.path": "\"/run/btc-priced/io.btcpriced.Price\""
        case "tls.ca-file": "\"/etc/ssl/my-authority.pem\""
        case "proxy.url": "\"socks5://127.0.0.1:9050\""
        case _ where name.hasSuffix(".interval-ms"): "10000"
        case _ where name.hasSuffix(".stream-url"):
            "\"\(Exchange.all.first { name.contains(".\($0.name).") }?.streamURLs.first ?? "")\""
        default: "\"https://data-api.binance.vision\""
        }
    }

    /// The prefix of every environment variable of the daemon.
    static let variablePrefix = "BTC_PRICED_"
    /// Variables with this prefix that are not the daemon's: the client reads the socket's path from `BTC_PRICED_SOCKET`.
    static let foreignVariables: Set<String> = ["BTC_PRICED_SOCKET"]

    private static let intervals =
        Int(Timestamp.possibleIntervals.lowerBound)...Int(Timestamp.possibleIntervals.upperBound)

    /// All settings, in the order in which they are shown.
    static let all: [SettingKey] =
        [
            SettingKey(
                name: "currencies", kind: .currencies, standard: .list([Currency.usd.rawValue]),
                summary: "The currencies of the price; the first is meant if a client names none."),
            SettingKey(
                name: "sources", kind: .sources(.usd), standard: .list(Exchange.names(of: .usd)),
                summary: "The sources of the price in USD, tried in this order; the first is the primary."),
            SettingKey(
                name: "tick.interval-ms", kind: .integer(intervals), standard: .integer(1000),
                summary: "From one tick to the next, milliseconds."),
            SettingKey(
                name: "tick.budget-ms", kind: .integer(100...60_000), standard: .integer(1000),
                summary: "The longest that a tick's fetch takes, milliseconds."),
            SettingKey(
                name: "tick.pause-when-idle", kind: .integer(0...86_400), standard: .integer(0),
                summary: "The ticks stop after this many seconds without a client that wants a price; 0 for never."),
            SettingKey(
                name: "streams", kind: .choice(StreamPolicy.allCases.map(\.rawValue)),
                standard: .text(StreamPolicy.auto.rawValue),
                summary:
                    "The exchanges' streams are open while a tick is shorter than a second or a client watches changes, or always:"
            ),
            SettingKey(
                name: "watch.min-interval-ms", kind: .integer(10...60_000), standard: .integer(100),
                summary:
                    "From one change of the price to the next that clients watching changes are sent, milliseconds."
            ),
            SettingKey(
                name: "mode", kind: .choice(PriceMode.allCases.map(\.rawValue)),
                standard: .text(PriceMode.primary.rawValue),
                summary: "The price of the first source that has one, or the median of all available sources:"),
            SettingKey(
                name: "quorum", kind: .integer(1...16), standard: .integer(3),
                summary: "With mode \"median\": how many sources have to agree."),
            SettingKey(
                name: "currency.usdt", kind: .choice(PegPolicy.allCases.map(\.rawValue)),
                standard: .text(PegPolicy.warn.rawValue),
                summary: "How prices in USDT, which is not the dollar, are handled:"),
            SettingKey(
                name: "validation.observe-interval-ms", kind: .integer(1000...15_000), standard: .integer(3000),
                summary: "From one look at a source beside the ticks to the next; up to half is added, milliseconds."),
        ]
        + Currency.allCases.flatMap { currency in
            let interval = SettingKey(
                name: "currency.\(currency).interval-ms", kind: .integer(1000...3_600_000), standard: nil,
                summary:
                    "From one tick of \(currency) to the next; if not set, 10 s, and tick.interval-ms for the first currency:"
            )
            let sources = SettingKey(
                name: "currency.\(currency).sources", kind: .sources(currency),
                standard: .list(Exchange.names(of: currency)), summary: "The sources of the price in \(currency).")
            return currency == .usd ? [interval] : [sources, interval]
        }
        + Exchange.all.flatMap { exchange in
            let prefix = "source.\(exchange.name)"
            return [
                SettingKey(
                    name: "\(prefix).url", kind: .text(.exchangeURL), standard: .text(exchange.baseURL),
                    summary: "The base address of the source.")
            ]
                + (exchange.secondURL == nil
                    ? []
                    : [
                        SettingKey(
                            name: "\(prefix).second-url", kind: .text(.exchangeURL), standard: nil,
                            summary: "The address used after the first one has responded with status 451.")
                    ])
                + (exchange.streamURLs.isEmpty
                    ? []
                    : [
                        SettingKey(
                            name: "\(prefix).stream-url", kind: .text(.streamURL), standard: nil,
                            summary:
                                "The address of its stream, without a path; if not set, its own, unless \(prefix).url is another one."
                        )
                    ]) + [
                    SettingKey(
                        name: "\(prefix).timeout-ms", kind: .integer(50...60_000), standard: .integer(800),
                        summary: "The timeout of a request, milliseconds."),
                    SettingKey(
                        name: "\(prefix).hedge-ms", kind: .integer(10...60_000), standard: .integer(400),
                        summary:
                            "If there is no response after this time, the next source is requested too, milliseconds."),
                ]
        } + [
            SettingKey(
                name: "state.directory", kind: .text(.path), standard: nil,
                summary: "Where the last price is kept over a reboot."),
            SettingKey(
                name: "runtime.directory", kind: .text(.path), standard: nil,
                summary: "Where it is kept over a restart."),
            SettingKey(
                name: "socket.path", kind: .text(.path), standard: nil,
                summary: "The socket; not used where systemd passes one."),
            SettingKey(
                name: "history.enabled", kind: .flag, standard: .flag(true),
                summary: "Whether the price's history is kept, in the state directory."),
            SettingKey(
                name: "history.keep-minutes", kind: .text(.span), standard: .text("1y"),
                summary:
                    "How long the candles of minutes are kept: 90d, 10y, forever. Hours and days are kept for ever:"
            ),
            SettingKey(
                name: "history.write-every-s", kind: .integer(1...3600), standard: .integer(60),
                summary: "From one write of the history to the next, seconds."),
            SettingKey(
                name: "history.backfill", kind: .flag, standard: .flag(true),
                summary: "Whether gaps of the history are filled with candles of the configured sources."),
            SettingKey(
                name: "fleet.fallback", kind: .flag, standard: .flag(false),
                summary:
                    "Whether the exchanges are requested if the sources are all peers, and none has had a price for 5 to 10 minutes."
            ),
            SettingKey(
                name: "clients.connections", kind: .integer(0...1_048_576), standard: .integer(0),
                summary: "The most connections in all; 0 for three quarters of the file descriptors."),
            SettingKey(
                name: "clients.connections-per-user", kind: .integer(0...1_048_576), standard: .integer(0),
                summary: "The most connections of one user; 0 for three quarters of those."),
            SettingKey(
                name: "clients.message-bytes", kind: .integer(256...1_048_576), standard: .integer(8192),
                summary: "The longest call, bytes."),
            SettingKey(
                name: "clients.queued-bytes", kind: .integer(4096...16_777_216), standard: .integer(16_384),
                summary: "Replies that may wait for one client before its further calls are held back, bytes."),
            SettingKey(
                name: "clients.pending-calls", kind: .integer(1...1_048_576), standard: .integer(4096),
                summary: "Pending calls in total; one user may have three quarters of them."),
            SettingKey(
                name: "clients.idle-timeout-s", kind: .integer(0...86_400), standard: .integer(600),
                summary: "A connection is closed after so many seconds without a call, unless it watches; 0 for never."),
            SettingKey(
                name: "clients.message-timeout-s", kind: .integer(0...86_400), standard: .integer(30),
                summary:
                    "A connection is closed if a call takes this many seconds from its first byte to its last; 0 for never."
            ),
            SettingKey(
                name: "clients.write-timeout-s", kind: .integer(0...86_400), standard: .integer(60),
                summary: "A connection is closed if its replies are not read for this many seconds; 0 for never."),
            SettingKey(
                name: "tls.ca-file", kind: .text(.path), standard: nil,
                summary: "A PEM file with trust anchors beside the system's."),
            SettingKey(
                name: "proxy.url", kind: .text(.proxyURL), standard: nil,
                summary: "http://host:port or socks5://host:port."),
            SettingKey(
                name: "log.level", kind: .text(.logLevel), standard: .text("info"),
                summary: "trace, debug, info, notice, warning, error or critical."),
        ]
}

/// The settings of peers: `source.<name>.socket`, with any name that is no exchange's.
extension SettingKey {
    /// The socket of a peer; `nil` if a peer can't have this name.
    static func socket(ofPeer name: String) -> SettingKey? {
        guard isPeerName(name) else { return nil }
        return SettingKey(
            name: "source.\(name).socket", kind: .text(.socketPath), standard: nil,
            summary: "The socket of another btc-priced, which is the source.")
    }

    /// Whether a peer can have this name: lower-case letters, digits and hyphens, a letter first, at most 32 of them.
    static func isPeerName(_ name: String) -> Bool {
        name.wholeMatch(of: /[a-z][a-z0-9-]{0,31}/) != nil && name != Market.medianName
            && !Exchange.all.contains { $0.name == name }
    }

    /// The peer whose socket this is.
    var peer: String? {
        guard name.hasPrefix("source."), name.hasSuffix(".socket") else { return nil }
        return String(name.dropFirst("source.".count).dropLast(".socket".count))
    }

    /// The setting of this name.
    init?(named name: String) {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        let peer = parts.count == 3 && parts[0] == "source" && parts[2] == "socket" ? String(parts[1]) : ""
        guard let key = Self.all.first(where: { $0.name == name }) ?? Self.socket(ofPeer: peer) else { return nil }
        self = key
    }

    /// The setting of this flag of the command line: `--source-alpha-socket`.
    init?(flag: String) {
        self.init(flag, prefix: "--source-", suffix: "-socket", spelling: \.flag)
    }

    /// The setting of this environment variable: `BTC_PRICED_SOURCE_ALPHA_SOCKET`.
    init?(variable: String) {
        self.init(variable, prefix: Self.variablePrefix + "SOURCE_", suffix: "_SOCKET", spelling: \.variable)
    }

    private init?(_ text: String, prefix: String, suffix: String, spelling: (SettingKey) -> String) {
        var peer = ""
        if text.hasPrefix(prefix), text.hasSuffix(suffix), text.utf8.count > prefix.utf8.count + suffix.utf8.count {
            peer = text.dropFirst(prefix.count).dropLast(suffix.count).lowercased().replacing("_", with: "-")
        }
        let key = Self.all.first { spelling($0) == text } ?? Self.socket(ofPeer: peer)
        guard let key, spelling(key) == text else { return nil }
        self = key
    }
}

extension Exchange {
    /// The exchanges with a market of a currency, in the default order.
    static func names(of currency: Currency) -> [String] {
        let known = all.filter { $0.markets[currency] != nil }.map(\.name)
        return currency == .usd ? known : ["kraken", "coinbase", "bitstamp", "binance"].filter(known.contains)
    }
}

/// A value before it is checked.
enum RawValue: Sendable, Hashable {
    /// A value from the environment or the command line, or a string in the file.
    case text(String)
    case integer(Int)
    case flag(Bool)
    case list([String])
    /// A value in the file that no setting accepts, as the name of its type.
    case other(String)
}

extension RawValue: CustomStringConvertible {
    /// The value in the syntax of the file.
    var description: String {
        switch self {
        case .text(let text): Self.quoted(text)
        case .integer(let number): "\(number)"
        case .flag(let isOn): "\(isOn)"
        case .list(let elements): "[\(elements.map(Self.quoted).joined(separator: ", "))]"
        case .other(let type): "a \(type)"
        }
    }

    /// A TOML string, always on one line.
    private static func quoted(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\\", "\"": return "\\\(scalar)"
            case "\0"..<" ", "\u{7F}":
                let digits = String(scalar.value, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: return String(scalar)
            }
        }
        return "\"\(escaped.joined())\""
    }
}

/// The place where a value was set.
enum Origin: Sendable, Hashable, CustomStringConvertible {
    case commandLine(flag: String)
    case environment(variable: String)
    case file(path: String, line: Int?)
    case standard

    var description: String {
        switch self {
        case .commandLine(let flag): "the command line, \(flag)"
        case .environment(let variable): "the environment, \(variable)"
        case .file(let path, let line?): "\(path), line \(line)"
        case .file(let path, nil): path
        case .standard: "the default"
        }
    }
}

/// An unknown or invalid setting, or a file that can't be read.
struct SettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place, the key, the value, and what is allowed.
    let description: String

    init(_ description: String) {
        self.description = description
    }

    init(_ origin: Origin, _ key: String, _ value: RawValue, allowed: String) {
        self.init("\(origin): \(key) = \(value): must be \(allowed)")
    }
}
