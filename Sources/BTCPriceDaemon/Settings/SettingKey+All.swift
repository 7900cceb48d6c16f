import BTCPriceCore
import BTCPriceNetworking
import Configuration

/// Every setting, in the order in which it is shown.
extension SettingKey {
    struct Section {
        let heading: String
        let keys: [SettingKey]
    }

    static let all: [SettingKey] = sections.flatMap(\.keys)

    static let sections = [
        Section(heading: "Currencies", keys: currencies), Section(heading: "Sources", keys: sources),
        Section(heading: "Ticks", keys: ticks), Section(heading: "Validation", keys: validation),
        Section(heading: "Streams", keys: streams), Section(heading: "Directories and the socket", keys: directories),
        Section(heading: "History", keys: history), Section(heading: "Clients", keys: clients),
        Section(heading: "TLS and proxy", keys: connections), Section(heading: "Log", keys: log),
    ]

    private static let intervals =
        Int(Timestamp.possibleIntervals.lowerBound)...Int(Timestamp.possibleIntervals.upperBound)

    private static let currencies =
        [
            SettingKey(
                name: "currencies", kind: .currencies, standard: .list([Currency.usd.rawValue]),
                text: "The currencies of the price. The first one is the default.")
        ]
        + ["sources", "interval-ms", "derive"].flatMap { part in
            Exchange.currencies.compactMap { key(part, of: $0) }
        }
        + [
            SettingKey(
                name: "reference-rates", kind: .rateSources, standard: .list(ReferenceRateSource.all.map(\.name)),
                text: """
                    The sources of reference rates, in their order. Derived prices use them, and first prices are checked against them. \
                    They are requested about four times a day, and only if there is more than one currency. Two that differ by more than \
                    1 % are not used. For rates of different days, this limit is 1 to 4 %, depending on the currency. An empty list \
                    requests none.
                    """)
        ]

    /// A setting of a currency; `nil` if there is none of this name.
    static func key(_ part: String, of currency: Currency) -> SettingKey? {
        switch part {
        // For the dollar it is "sources".
        case "sources" where currency != .usd:
            SettingKey(
                name: "currency.\(currency).sources", kind: .sources(currency),
                standard: .list(Exchange.names(of: currency)),
                text: """
                    The sources of the price in this currency: exchanges with such a market, each once, tried in this order. For USD it \
                    is "sources".
                    """)
        // The rates are those of the euro and the dollar.
        case "derive" where currency.nearest != nil:
            SettingKey(
                name: "currency.\(currency).derive", kind: .choice(DerivationPolicy.allCases.map(\.rawValue)),
                standard: nil, example: .text(DerivationPolicy.never.rawValue),
                text: """
                    Whether the price in this currency is derived from the one in EUR or USD, with a reference rate. "never": it is not. \
                    "fallback": while its sources have no price. "always": it has no sources. A derived price is marked. Default: \
                    "always" without sources, else "fallback" if EUR or USD is kept anyway.
                    """)
        case "interval-ms":
            SettingKey(
                name: "currency.\(currency).interval-ms", kind: .integer(1000...3_600_000), standard: nil,
                example: .integer(10_000),
                text: """
                    The time between two ticks of this currency, in milliseconds. Default: tick.interval-ms for the first currency, \
                    10000 for the others.
                    """)
        default: nil
        }
    }

    private static let sources =
        [
            SettingKey(
                name: "sources", kind: .sources(.usd), standard: .list(Exchange.names(of: .usd)),
                text: """
                    The sources of the price in USD: exchanges and peers, each once. They are tried in this order. The first one is the \
                    primary.
                    """)
        ]
        + ["url", "second-url", "stream-url", "timeout-ms", "hedge-ms"].flatMap { part in
            Exchange.all.compactMap { exchange in
                let hasIt =
                    switch part {
                    case "second-url": exchange.secondURL != nil
                    case "stream-url": !exchange.streamURLs.isEmpty
                    default: true
                    }
                return hasIt ? key(part, ofSource: exchange.name, exchange) : nil
            }
        }
        + [
            SettingKey(
                name: "fleet.fallback", kind: .flag, standard: .flag(false),
                text: """
                    If "sources" names peers only: whether the exchanges are requested, in their default order, once no peer has had a \
                    price for 5 to 10 minutes. The time is random, set at each start and reload, and begins again after a sleep or a \
                    pause. When a peer has a price again, the exchanges are no longer requested.
                    """)
        ]

    /// A setting of a source; `nil` if there is none of this name. `exchange` is the source, if it is built in.
    static func key(_ part: String, ofSource source: String, _ exchange: Exchange? = nil) -> SettingKey? {
        let name = "source.\(source).\(part)"
        return switch part {
        case "url":
            SettingKey(
                name: name, kind: .text(.exchangeURL), standard: exchange.map { .text($0.baseURL) },
                text: """
                    The base address for requests: a mirror, a gateway or the simulator. http or https, a host, and optionally a port \
                    and a path. Every local user can read it with 'btcctl sources'.
                    """)
        case "second-url":
            SettingKey(
                name: name, kind: .text(.exchangeURL), standard: nil,
                inForce: { $0.source(source)?.secondURL.map { .text($0) } },
                example: exchange?.secondURL.map { .text($0) },
                text: """
                    The address that is used once the first one has responded with status 451 (not available in this region). Default: \
                    \(exchange?.secondURL ?? "that of its description"), unless source.\(source).url is set.
                    """)
        case "stream-url":
            SettingKey(
                name: name, kind: .text(.streamURL), standard: nil,
                inForce: { $0.source(source)?.streamURLs.first.map { .text($0) } },
                example: exchange?.streamURLs.first.map { .text($0) },
                text: """
                    The address of the exchange's stream: ws or wss, a host, and optionally a port. Default: the exchange's own, unless \
                    the source's url is set.
                    """)
        case "timeout-ms":
            SettingKey(
                name: name, kind: .integer(50...60_000), standard: .integer(800),
                text: "The time after which a request has failed, in milliseconds.")
        case "hedge-ms":
            SettingKey(
                name: name, kind: .integer(10...60_000), standard: .integer(400),
                text: "If there is no response after this time, the next source is requested too, in milliseconds.")
        case "socket":
            SettingKey(
                name: name, kind: .text(.socketPath), standard: nil,
                text: "The socket of a peer: another btc-priced, which is the source.")
        default: nil
        }
    }

    private static let ticks = [
        SettingKey(
            name: "tick.interval-ms", kind: .integer(intervals), standard: .integer(1000),
            text: "The time between two ticks, in milliseconds."),
        SettingKey(
            name: "tick.budget-ms", kind: .integer(100...60_000), standard: .integer(1000),
            text: "The time in which all requests of a tick must finish, response bodies included, in milliseconds."),
        SettingKey(
            name: "tick.pause-when-idle", kind: .integer(0...86_400), standard: .integer(0),
            text: """
                The ticks pause after this many seconds without a client that wants a price. The next such client gets the last price \
                as stale, or if that is older than its --max-age waits for the next one, and the ticks start again at once. 0 means \
                never.
                """),
    ]

    private static let validation = [
        SettingKey(
            name: "mode", kind: .choice(PriceMode.allCases.map(\.rawValue)),
            standard: .text(PriceMode.primary.rawValue),
            text: """
                How the price is made. "primary": it is that of the first source that has one. "median": all available sources are requested at every tick, and \
                the price is their median.
                """),
        SettingKey(
            name: "quorum", kind: .integer(1...16), standard: .integer(3),
            text: """
                With mode "median": how many exchanges or peers must agree. If fewer do, the price is unconfirmed; if fewer have a \
                price, the tick has failed. It cannot be larger than the number of sources.
                """),
        SettingKey(
            name: "currency.usdt", kind: .choice(PegPolicy.allCases.map(\.rawValue)),
            standard: .text(PegPolicy.warn.rawValue),
            text: """
                What to do with a price in USDT. "warn": show it, with a warning while USDT is off its peg by 1 % or more. "convert": \
                multiply it by the rate of USDT.
                """),
        SettingKey(
            name: "validation.observe-interval-ms", kind: .integer(1000...15_000), standard: .integer(3000),
            text: """
                The time between two requests to sources that the ticks do not use, in milliseconds. Up to half of it is added at \
                random. A smaller value finds a wrong primary sooner, and sends more requests to the other sources.
                """),
    ]

    private static let streams = [
        SettingKey(
            name: "streams", kind: .choice(["auto", "never"]), standard: .text("auto"),
            text: """
                When the exchanges' streams are open. "auto": while a client watches changes, and for 30 seconds after that. "never": not \
                at all.
                """),
        SettingKey(
            name: "watch.min-interval-ms", kind: .integer(10...60_000), standard: .integer(100),
            text: """
                The minimum time between two states that a client watching changes gets because the price has changed, in milliseconds.
                """),
    ]

    private static let directories = [
        SettingKey(
            name: "state.directory", kind: .text(.path), standard: nil, inForce: { .text($0.directories.state) },
            example: .text("/var/lib/btc-priced"), isFixed: true,
            text: """
                Keeps the last price over a reboot. Default: $STATE_DIRECTORY; else \
                /var/lib/btc-priced for root, and $XDG_STATE_HOME/btc-priced or ~/.local/state/btc-priced for other users.
                """),
        SettingKey(
            name: "runtime.directory", kind: .text(.path), standard: nil, inForce: { .text($0.directories.runtime) },
            example: .text("/run/btc-priced"), isFixed: true,
            text: """
                Keeps the price of every tick over a restart, and on a tmpfs its age. It must not be the state directory. Default: \
                $RUNTIME_DIRECTORY; else /run/btc-priced for root, and for other users $XDG_RUNTIME_DIR/btc-priced, \
                /run/user/UID/btc-priced or /tmp/btc-priced-UID.
                """),
        SettingKey(
            name: "socket.path", kind: .text(.socketPath), standard: nil, inForce: { .text($0.socketPath) },
            example: .text("/run/btc-priced/io.btcpriced.Price"), isFixed: true,
            text: """
                The socket. Default: io.btcpriced.Price in the runtime directory. Not used if \
                systemd passes a socket, as btc-priced.socket does.
                """),
    ]

    private static let history = [
        SettingKey(
            name: "history.enabled", kind: .flag, standard: .flag(true), isFixed: true,
            text: "Whether a history is kept, in the state directory."),
        SettingKey(
            name: "history.keep-minutes", kind: .text(.span), standard: .text("1y"),
            text: """
                How long the candles of minutes are kept: "1d" to "100y", or "forever". Hours and days are kept forever. After the time \
                is shortened, a day of minutes is deleted each hour. A year of minutes takes about 40 MB for each currency.
                """),
        SettingKey(
            name: "history.write-every-s", kind: .integer(1...3600), standard: .integer(60),
            text: """
                The time between two writes, in seconds. A kill loses at most this much and the current minute. A power cut may lose \
                some hours; the file stays whole. The backfill fills both gaps. On an SD card, 300 reduces wear.
                """),
        SettingKey(
            name: "history.backfill", kind: .flag, standard: .flag(true),
            text: """
                Whether gaps are filled with candles of the configured sources: the last 24 hours in minutes, two years in days and hours. \
                Hours older than 30 days are requested once a minute. Exchanges then learn when the daemon was off.
                """),
    ]

    private static let clients = [
        SettingKey(
            name: "clients.connections", kind: .integer(0...1_048_576), standard: .integer(0),
            text: """
                The maximum number of connections, of which one user can have three quarters. The next one is closed. 0 means three \
                quarters of the file descriptors that the daemon may have, which is also the most. Root and the daemon's user can have \
                eight more.
                """),
        SettingKey(
            name: "clients.queued-mib", kind: .integer(1...1024), standard: .integer(64),
            text: """
                The memory for replies that clients have not read and calls that they sent in advance, of all connections together, MiB; \
                of one user three quarters. Above this, of the user with the most, the connections that have been unread longest are \
                closed. MemoryMax= of the unit must be larger.
                """),
        SettingKey(
            name: "clients.timeout-s", kind: .integer(1...86_400), standard: .integer(30),
            text: """
                A connection is closed if one call takes this many seconds from its first byte to its last, if its replies stay unread \
                for twice as long, or after twenty times as long without a call, unless it watches. Each may come up to a quarter of \
                this time later.
                """),
    ]

    private static let connections = [
        SettingKey(
            name: "tls.ca-file", kind: .text(.path), standard: nil, example: .text("/etc/ssl/my-authority.pem"),
            text: "A PEM file with certificates of authorities to trust, in addition to the system's."),
        SettingKey(
            name: "proxy.url", kind: .text(.proxyURL), standard: nil, example: .text("socks5://127.0.0.1:9050"),
            text: """
                A proxy for all requests: http://host:port or socks5://host:port. A user name and a password are not supported.
                """),
    ]

    private static let log = [
        SettingKey(
            name: "log.level", kind: .text(.logLevel), standard: .text("info"),
            text: "The lowest level that is written: trace, debug, info, notice, warning, error or critical.")
    ]
}

extension Exchange {
    /// The built-in exchanges with a market of a currency, in the default order. For USD, that is the order of ``all``. For other
    /// currencies, the exchanges with the most currencies come first. Of those with the same number, an exchange with USDT instead of
    /// dollars comes last.
    /// - Parameter exchanges: Those in force, some of which may replace built-in ones.
    static func names(of currency: Currency, among exchanges: [Exchange] = all) -> [String] {
        let builtIn = Set(all.map(\.name))
        let known = exchanges.filter { builtIn.contains($0.name) && $0.markets[currency] != nil }
        guard currency != .usd else { return known.map(\.name) }
        let ordered = known.enumerated().map { index, exchange in
            (-exchange.markets.count, exchange.markets[.usd]?.isInTether == true ? 1 : 0, index, exchange.name)
        }
        return ordered.sorted { $0 < $1 }.map(\.3)
    }
}
