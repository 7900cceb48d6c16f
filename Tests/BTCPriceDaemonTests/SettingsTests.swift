import BTCPriceCore
import BTCPriceNetworking
import CommandLine
import Configuration
import FoundationEssentials
import Glibc
import Logging
import Systemd
import TestSupport
import Testing

@testable import BTCPriceDaemon

@Suite struct SettingsTests {
    private func read(
        _ arguments: [String] = [], environment: [String: String] = [:], file: String? = nil, uid: UInt32 = 0
    ) throws -> Settings {
        let commandLine = try DaemonCommandLine(arguments)
        let parsed = try file.map { try ConfigurationFile(text: $0, path: "c.toml") }
        return try Settings(
            Layers(
                commandLine: commandLine, environment: environment, files: ConfigurationFiles(parsed, path: "c.toml")),
            environment: environment, uid: uid
        )
    }

    private func complaint(
        _ arguments: [String] = [], environment: [String: String] = [:], file: String? = nil
    ) -> String? {
        do {
            _ = try read(arguments, environment: environment, file: file)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func `a source without its key, or switched off, is told in its configured order`() async throws {
        let settings = try read(environment: [
            "BTC_PRICED_CURRENCIES": "EUR,USD", "BTC_PRICED_SOURCES": "binance,coinbase,cryptocompare",
            "BTC_PRICED_CURRENCY_EUR_SOURCES": "kraken,coinbase",
        ])
        let loop = TickLoop()
        let sources = try ConfiguredSources(
            settings, off: ["kraken"], client: ExchangeClient(HTTPTransportSettings(userAgent: "test"), on: loop),
            credentials: Credentials(environment: [:]), instance: "i",
            now: { ObservationTime(wall: Timestamp(milliseconds: 0), boottime: .boot) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, report: { _, _ in })
        #expect(sources.unused(.usd).map { [$0.name, "\($0.order)"] } == [["cryptocompare", "3"]])
        #expect(sources.unused(.eur).map { [$0.name, "\($0.order)"] } == [["kraken", "1"]])
        await loop.shutDown()
    }

    @Test func `without settings every value is the documented default`() throws {
        let settings = try read()
        #expect(
            settings.sources.map(\.name) == [
                "binance", "cryptocompare", "coinbase", "bitstamp", "kraken",
            ])
        #expect(settings.sources.allSatisfy { $0.timeout == .milliseconds(800) && $0.hedge == .milliseconds(400) })
        #expect(settings.first.interval == .seconds(1))
        #expect(settings.budget == .seconds(1))
        #expect(settings.directories.state == "/var/lib/btc-priced")
        #expect(settings.socketPath == "/run/btc-priced/io.btcpriced.Price")
        #expect(settings.proxy == nil)
        #expect(settings.logLevel == .info)
    }

    @Test func `the command line overrides the environment, which overrides the file, which overrides the defaults`()
        throws
    {
        let file = "[tick]\ninterval-ms = 2000\nbudget-ms = 300\n[source.binance]\ntimeout-ms = 700\n"
        let environment = ["BTC_PRICED_TICK_INTERVAL_MS": "3000", "BTC_PRICED_SOURCE_BINANCE_TIMEOUT_MS": "600"]
        let settings = try read(["--tick-interval-ms", "4000"], environment: environment, file: file)
        #expect(settings.first.interval == .seconds(4))
        #expect(settings.sources[0].timeout == .milliseconds(600))
        #expect(settings.budget == .milliseconds(300))
        #expect(settings.sources[1].timeout == .milliseconds(800))
        let listing = settings.listing
        #expect(listing.contains("tick.interval-ms = 4000  # the command line, --tick-interval-ms\n"))
        #expect(
            listing.contains(
                "source.binance.timeout-ms = 600  # the environment, BTC_PRICED_SOURCE_BINANCE_TIMEOUT_MS\n"))
        #expect(listing.contains("tick.budget-ms = 300  # c.toml, line 3\n"))
        #expect(listing.contains("source.coinbase.hedge-ms = 400  # the default\n"))
        #expect(listing.contains("# proxy.url is not set\n"))
    }

    @Test func `a second address belongs to the default first one: another one has none unless it is set`() throws {
        #expect(try read().sources[0].secondURL == "https://data-api.binance.vision")
        #expect(try read(["--source-binance-url", "https://mirror.example"]).sources[0].secondURL == nil)
        let both = try read([
            "--source-binance-url", "https://mirror.example", "--source-binance-second-url", "https://other.example/",
        ])
        #expect(both.sources[0].secondURL == "https://other.example")
        #expect(complaint(["--source-coinbase-second-url", "https://x.example"]) != nil)
        #expect(complaint(["--source-binance-second-url", "ftp://x.example"]) != nil)
    }

    @Test func `the exchanges are the reserve of peers if the setting is on`() throws {
        let file = "fleet.fallback = true\nsource.alpha.socket = \"/run/a\"\n"
        let sources = try read(file: "sources = [\"alpha\"]\n" + file).first.sources
        #expect(sources.map(\.name) == ["alpha"] + Exchange.names(of: .usd))
        #expect(sources[0].reserve == nil)
        #expect(
            sources.dropFirst().allSatisfy {
                $0.reserve.map { (.seconds(300) ... .seconds(600)).contains($0) } ?? false
            })
        #expect(try read(file: "sources = [\"alpha\"]\nsource.alpha.socket = \"/run/a\"\n").first.sources.count == 1)
        #expect(
            complaint(file: "sources = [\"alpha\", \"kraken\"]\n" + file)?.contains("kraken is an exchange") == true)
    }

    @Test func `any other name is a peer's, if its socket is set`() throws {
        let file = "sources = [\"alpha\", \"kraken\"]\nsource.alpha.socket = \"/run/a\"\n"
        let environment = ["BTC_PRICED_SOURCE_B_2_SOCKET": "/run/b"]
        let settings = try read(file: file)
        #expect(settings.sources.map(\.name) == ["alpha", "kraken"])
        #expect(settings.listing.contains("source.alpha.socket = \"/run/a\"  # c.toml, line 2\n"))
        #expect(try read(["--sources=b-2"], environment: environment).sources.map(\.name) == ["b-2"])
        #expect(try read(["--sources=c,b-2", "--source-c-socket=/run/c"], environment: environment).sources.count == 2)
        #expect(try read(file: settings.listing).sources.map(\.name) == ["alpha", "kraken"])
        #expect(
            complaint(file: "sources = [\"alpha\"]")
                == "c.toml, line 1: sources = [\"alpha\"]: must be a list of one or more of binance, cryptocompare, coinbase, bitstamp, kraken, each once"
        )
        #expect(
            complaint(file: "source.alpha.socket = \"/run/a\"")
                == "c.toml, line 1: source.alpha.socket is set, but sources does not name alpha: add it there")
        #expect(
            complaint(file: "source.alpha.socket = \"a\"")
                == "c.toml, line 1: source.alpha.socket = \"a\": must be an absolute path of at most 107 bytes")
        #expect(complaint(file: "source.alpha.socket = \"/\(String(repeating: "a", count: 107))\"") != nil)
        for name in ["kraken", "median", "Alpha", "a_b", "1a", ""] {
            #expect(complaint(file: "source.\"\(name)\".socket = \"/run/a\"")?.contains("must be") == false, "\(name)")
            #expect(complaint(["--source-\(name)-socket=/run/a"]) != nil)
        }
    }

    @Test func `a file with a NUL is refused, whatever precedes it`() {
        #expect(
            complaint(file: "tick.interval-ms = 4000\n\0tick.interval-ms = 5\n")
                == "c.toml, line 2, column 1: no key where one is expected")
        #expect(complaint(file: "\0\0\0") != nil)
    }

    @Test func `the list of settings can be read as a file`() throws {
        let settings = try read(["--log-level=debug", "--proxy-url=socks5://[::1]:9050", "--sources=coinbase,binance"])
        let again = try read(file: settings.listing)
        #expect(again.entries.map(\.value) == settings.entries.map(\.value))
        #expect(again.proxy == .socks5(host: "::1", port: 9050))
        #expect(again.sources.map(\.name) == ["coinbase", "binance"])
        // A control character would end the line, and an accent hides the quotation mark before it.
        let odd = try read(["--tls-ca-file=/a\n\t\u{7F}\"\u{301}\\b"])
        #expect(try read(file: odd.listing).caFile == odd.caFile)
    }

    @Test(arguments: [
        (
            "tick.interval-ms = \"abc\"",
            "c.toml, line 1: tick.interval-ms = \"abc\": must be a whole number from 100 to 3600000"
        ),
        ("tick.interval-ms = 99", "c.toml, line 1: tick.interval-ms = 99: must be a whole number from 100 to 3600000"),
        (
            "# x\n[tick]\n\ninterval-ms = 1.5",
            "c.toml, line 4: tick.interval-ms = a floating-point number: must be a whole number from 100 to 3600000"
        ),
        (
            "tick.interval-ms = \"1000\"",
            "c.toml, line 1: tick.interval-ms = \"1000\": must be a whole number from 100 to 3600000"
        ),
        (
            "[tick]\nintervall-ms = 5",
            "c.toml, line 2: unknown key tick.intervall-ms (its value is 5); did you mean tick.interval-ms?"
        ),
        (
            "source.bitfenix.url = \"https://x\"",
            "c.toml, line 1: source.bitfenix.url: there is no source 'bitfenix'; there are binance, cryptocompare, coinbase, bitstamp, kraken; a peer has source.bitfenix.socket, and another exchange has a table [exchange.bitfenix]"
        ),
        (
            "sources = []",
            "c.toml, line 1: sources = []: must be a list of one or more of binance, cryptocompare, coinbase, bitstamp, kraken, each once"
        ),
        (
            "sources = [\"binance\", \"binance\"]",
            "c.toml, line 1: sources = [\"binance\", \"binance\"]: must be a list of one or more of binance, cryptocompare, coinbase, bitstamp, kraken, each once"
        ),
        (
            "sources = \"binance\"",
            "c.toml, line 1: sources = \"binance\": must be a list of one or more of binance, cryptocompare, coinbase, bitstamp, kraken, each once"
        ),
        (
            "sources = [1]",
            "c.toml, line 1: sources = a list of other than strings: must be a list of one or more of binance, cryptocompare, coinbase, bitstamp, kraken, each once"
        ),
        ("state.directory = \"var\"", "c.toml, line 1: state.directory = \"var\": must be an absolute path"),
        (
            "log.level = \"loud\"",
            "c.toml, line 1: log.level = \"loud\": must be one of trace, debug, info, notice, warning, error, critical"
        ),
        (
            "proxy.url = \"ftp://x:1\"",
            "c.toml, line 1: proxy.url = \"ftp://x:1\": must be http://host:port or socks5://host:port"
        ),
        (
            "source.binance.url = \"https://user@host\"",
            "c.toml, line 1: source.binance.url = \"https://user@host\": must be an address like https://host, without user, query and fragment"
        ),
    ])
    func `an invalid line is reported with file, line, key, value and the allowed values`(
        file: String, expected: String
    ) {
        #expect(complaint(file: file) == expected)
    }

    @Test func `an empty table with a known name is allowed`() {
        #expect(complaint(file: "[tick]\n[source.binance]\n") == nil)
        #expect(
            complaint(file: "[tick]\ncurrencies = [\"EUR\"]\n")?.contains(
                "unknown key tick.currencies (its value is [\"EUR\"]); move currencies above [tick]") == true)
        #expect(complaint(file: "[tcik]\n")?.contains("unknown key tcik") == true)
        #expect(
            complaint(file: "currency.USD.sources = [\"kraken\"]\n")?.hasSuffix(
                "the key of the price in USD is sources") == true)
        #expect(
            complaint(file: "currency.EUR.derive = \"never\"\n")?.hasSuffix("a price in EUR or USD is never derived")
                == true)
    }

    @Test func `invalid TOML is reported with line and column`() {
        #expect(complaint(file: "a = 1\nb = = 2\n")?.hasPrefix("c.toml, line 2, column ") == true)
        #expect(complaint(file: "a = 1\na = 2\n")?.hasPrefix("c.toml, line 2, column ") == true)
        #expect(
            complaint(file: "tick.budget-ms = 900\n[tick]\ninterval-ms = 1000\n")?.hasSuffix(
                "the table [tick] begins in line 1: write all of its keys there") == true)
    }

    @Test func `errors on the command line and in the environment are reported too`() throws {
        #expect(complaint(["--nonsense"])?.contains("unknown option '--nonsense'. See") == true)
        #expect(
            complaint(["--tick-intervall-ms=5"])?.contains(
                "unknown option '--tick-intervall-ms'. Did you mean '--tick-interval-ms'?") == true)
        #expect(complaint(["--sources", "binanc,kraken"])?.hasSuffix("; did you mean binance?") == true)
        #expect(
            complaint(environment: ["BTC_PRICED_TICK_INTERVAL": "5"])
                == "the environment: BTC_PRICED_TICK_INTERVAL is not a setting of btc-priced; did you mean BTC_PRICED_TICK_INTERVAL_MS?"
        )
        #expect(complaint(["--tick-interval-ms"])?.contains("--tick-interval-ms needs a value") == true)
        #expect(
            complaint(["--tick-interval-ms", "abc"])
                == "the command line, --tick-interval-ms: tick.interval-ms = \"abc\": must be a whole number from 100 to 3600000"
        )
        #expect(
            complaint(environment: ["BTC_PRICED_TICK_BUDGET_MS": "0"])
                == "the environment, BTC_PRICED_TICK_BUDGET_MS: tick.budget-ms = \"0\": must be a whole number from 100 to 60000"
        )
        #expect(try read(environment: ["BTC_PRICED_SOCKET": "/x"]).warnings == [], "that one is the client's")
    }

    @Test func `a variable that is not the daemon's is ignored`() throws {
        // Kubernetes makes them for services called btc-priced and btc-priced-http, Docker for a link.
        let names = [
            "HTTP_PORT", "HTTP_SERVICE_HOST", "NAME", "PORT", "PORT_8340_TCP", "PORT_8340_TCP_ADDR",
            "PORT_8340_TCP_PORT", "PORT_8340_TCP_PROTO", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP",
        ].map { "BTC_PRICED_\($0)" }
        let environment = Dictionary(uniqueKeysWithValues: names.map { ($0, "tcp://10.43.0.7:8340") })
        #expect(
            try read(environment: environment).warnings
                == names.map { "the environment: \($0) is not a setting of btc-priced, and is ignored" })
    }

    @Test(
        arguments: [
            (["--currency-usdt=refuse"], [:], nil, "the command line, --currency-usdt"),
            ([], ["BTC_PRICED_CURRENCY_USDT": "refuse"], nil, "the environment, BTC_PRICED_CURRENCY_USDT"),
            ([], [:], "[currency]\nusdt = \"refuse\"", "c.toml, line 2"),
        ] as [([String], [String: String], String?, String)])
    func `a value that has gone is a warning`(
        arguments: [String], environment: [String: String], file: String?, origin: String
    ) throws {
        let settings = try read(arguments, environment: environment, file: file)
        #expect(settings.first.rules.peg == .warn)
        #expect(
            settings.warnings == [
                "\(origin): currency.usdt = \"refuse\" has gone, and now means \"warn\"; to use no price in USDT, leave binance out of sources"
            ])
        #expect(
            try read(arguments + ["--currency-usdt=convert"], environment: environment, file: file).first.rules.peg
                == .convert)
    }

    @Test(arguments: [
        "connections-per-user", "message-bytes", "queued-bytes", "pending-calls", "message-timeout-s",
        "write-timeout-s",
        "idle-timeout-s",
    ])
    func `a key that has gone is a warning, whatever its value, and is not listed`(name: String) throws {
        let standard = try read()
        let variable = "BTC_PRICED_CLIENTS_\(name.uppercased().replacing("-", with: "_"))"
        let settings = try read(
            ["--clients-\(name)=8"], environment: [variable: "x"], file: "clients.\(name) = \"much\"")
        #expect(settings.limits == standard.limits)
        #expect(settings.warnings.count == 3)
        #expect(settings.warnings.allSatisfy { $0.contains("clients.\(name) has gone, and is ignored; ") })
        #expect(!settings.listing.contains("clients.\(name)") && !SettingKey.standardFile.contains("clients.\(name)"))
    }

    @Test func `streams that are always open have gone`() throws {
        let settings = try read(["--streams=always"])
        #expect(settings.changeInterval == .milliseconds(100))
        #expect(
            settings.warnings == [
                "the command line, --streams: streams = \"always\" has gone, and now means \"auto\"; each tick requests a price, and streams are open while a client watches changes"
            ])
        #expect(try read(["--streams=never"]).changeInterval == nil)
    }

    @Test func `only the daemon's variables name descriptions`() throws {
        let directory = TemporaryDirectory()
        let path = "\(directory.path)/btc-priced/exchanges"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Data("a = 1\n".utf8).write(to: URL(filePath: "\(path)/luno.toml"))
        func read(_ environment: [String: String]) throws {
            _ = try ConfigurationFiles(
                DaemonCommandLine(), environment: ["XDG_DATA_DIRS": directory.path].merging(environment) { $1 },
                uid: 1000)
        }
        try read(["EDITOR": "luno", "BTC_PRICED_SERVICE_HOST": "luno"])
        #expect(throws: SettingsError.self) { try read(["BTC_PRICED_SOURCES": "luno"]) }
        #expect(throws: SettingsError.self) { try read(["BTC_PRICED_SOURCE_LUNO_URL": "https://luno.example"]) }
    }

    @Test func `a quorum is at most the number of the first currency's sources, if it has any`() throws {
        #expect(
            complaint(["--mode=median", "--quorum=4"], file: "sources = [\"kraken\", \"coinbase\", \"bitstamp\"]")
                == "quorum = 4: must be at most 3, as many as there are sources")
        // A reserve comes only while no peer has a price.
        #expect(
            complaint(
                ["--mode=median", "--quorum=2"],
                file: "sources = [\"alpha\"]\nfleet.fallback = true\nsource.alpha.socket = \"/run/a\"")
                == "quorum = 2: must be at most 1, as many as there are sources")
        let derived = try read(["--mode=median", "--quorum=3", "--currencies=PLN,USD"])
        #expect(derived.first.sources.isEmpty && derived.currencies[1].rules.quorum == 3)
    }

    @Test func `a currency that is derived needs reference rates`() throws {
        #expect(
            complaint(file: "currencies = [\"USD\", \"SEK\"]\nreference-rates = []")
                == "reference-rates = []: the price in SEK is derived with a reference rate: name a source of them, or leave SEK out of currencies"
        )
        #expect(try read(file: "currencies = [\"USD\", \"GBP\"]\nreference-rates = []").currencies.count == 2)
    }

    @Test(arguments: Exchange.all.map(\.name))
    func `an exchange that is described anew is requested where its description says`(
        name: String
    ) throws {
        let settings = try read(
            file: """
                sources = ["\(name)"]
                currencies = ["USD", "CHF"]
                [exchange.\(name)]
                url = "https://mirror.example/ticker"
                price = "/last"
                markets = { USD = {} }
                """)
        let source = try #require(settings.first.sources.first)
        #expect(source.address == "https://mirror.example")
        #expect(source.secondURL == nil && source.streamURLs.isEmpty)
        #expect(settings.elsewhere.isEmpty)
        #expect(settings.listing.contains("source.\(name).url = \"https://mirror.example\"  # the default"))
        // It no longer has the other currencies.
        #expect(!settings.currencies[1].sources.map(\.name).contains(name))
        #expect(settings.currencies[1].derivation == (name == "kraken" ? .always : .fallback))
        let mirrored = try read(["--source-\(name)-url", "https://other.example"], file: "sources = [\"\(name)\"]")
        #expect(mirrored.first.sources.first?.address == "https://other.example")
    }

    @Test func `a peer can't have the name of a described exchange`() {
        let file = """
            sources = ["mine"]
            source.mine.socket = "/run/alpha/io.btcpriced.Price"
            [exchange.mine]
            url = "https://api.example.com/ticker"
            price = "/last"
            markets = { USD = {} }
            """
        #expect(
            complaint(file: file)
                == "c.toml, line 2: source.mine.socket: mine is an exchange, by its description: give the peer another name"
        )
    }

    @Test func `a reload names changed keys and descriptions`() throws {
        func settings(_ limits: String, _ more: String = "") throws -> Settings {
            try read(
                file: """
                    \(more)
                    [exchange.mine]
                    url = "https://api.example.com/ticker"
                    price = "/last"
                    markets = { EUR = {} }
                    limits = ["\(limits)"]
                    """)
        }
        let old = try settings("10/1s")
        #expect(try settings("10/1s").changes(from: old) == [])
        #expect(try settings("1/10s").changes(from: old) == ["exchange.mine"])
        #expect(try settings("1/10s", "quorum = 2").changes(from: old) == ["quorum", "exchange.mine"])
        #expect(try read().changes(from: old) == ["exchange.mine"])
    }

    @Test func `an invalid line is an error even if it is overridden`() {
        #expect(complaint(["--tick-interval-ms", "1000"], file: "tick.interval-ms = 1") != nil)
    }

    @Test func `only a file that does not exist is absent; one that can't be seen is an error`() throws {
        let directory = TemporaryDirectory()
        #expect(try !Directories.exists("\(directory.path)/none/config.toml"))
        try "".write(toFile: "\(directory.path)/file", atomically: true, encoding: .utf8)
        #expect(try Directories.exists("\(directory.path)/file"))
        #expect(try !Directories.exists("\(directory.path)/file/config.toml"))
        let long = "\(directory.path)/\(String(repeating: "x", count: 300))"
        #expect(throws: SettingsError("\(long): File name too long")) { try Directories.exists(long) }
        symlink("\(directory.path)/none", "\(directory.path)/link")
        #expect(throws: SettingsError("\(directory.path)/link: it is a link to a file that does not exist")) {
            try Directories.exists("\(directory.path)/link")
        }
    }

    @Test func `a currency that was replaced is a warning, and its successor is kept`() throws {
        let settings = try read(
            file: "currencies = [\"USD\", \"BGN\", \"HRK\", \"SLL\"]\ncurrency.BGN.interval-ms = 5000\n")
        #expect(settings.currencies.map(\.currency.rawValue) == ["USD", "EUR", "SLE"])
        #expect(
            settings.warnings == [
                "c.toml, line 2: currency.BGN.interval-ms: BGN was replaced by EUR, and the key is ignored: write currency.EUR.interval-ms",
                "c.toml, line 1: currencies: BGN was replaced by EUR: write that",
                "c.toml, line 1: currencies: HRK was replaced by EUR: write that",
                "c.toml, line 1: currencies: SLL was replaced by SLE: write that",
            ])
        let mine = try read(
            environment: ["BTC_PRICED_CURRENCY_BGN_INTERVAL_MS": "5000"],
            file:
                "[exchange.mine]\nurl = \"https://x.example\"\nprice = \"/p\"\nweight = 2\ntime-offset-s = 1\nmarkets = { BGN = {}, USD = {} }"
        )
        #expect(
            mine.warnings == [
                "c.toml: exchange.mine.markets: BGN was replaced by EUR, and the market is ignored",
                "c.toml: exchange.mine.weight: it has no effect without limits",
                "c.toml: exchange.mine.time-offset-s: it has no effect without time",
                "the environment: BTC_PRICED_CURRENCY_BGN_INTERVAL_MS: BGN was replaced by EUR, and the variable is ignored",
            ])
        #expect(try read(["--currencies", "USD,EUR,BGN"]).currencies.map(\.currency.rawValue) == ["USD", "EUR"])
        #expect(complaint(file: "currencies = [\"USD\", \"USD\"]") != nil)
    }

    @Test func `the printed configuration is a valid one, with the descriptions`() throws {
        let settings = try read(
            file: """
                currencies = ["USD", "EUR"]
                currency.EUR.sources = ["mine"]
                [exchange.mine]
                url = "https://api.example.com/{name}"
                price = "/last"
                require = { "/a.b" = "{name}" }
                markets = { EUR = {} }
                """)
        let printed = settings.listing.replacing(/(?m)^.*directory = .*$/, with: "")
        let again = try read(file: printed)
        #expect(again.currencies[1].sources.map(\.address) == ["https://api.example.com"])
        #expect(again.descriptions == settings.descriptions)
        #expect(again.first.sources.map(\.address) == settings.first.sources.map(\.address))
    }

    @Test(arguments: [
        (
            "sources = [\"alpha\"]\nsource.alpha.socket = \"/run/alpha\"\nsource.alpha.timeout-ms = 100",
            "c.toml, line 3: source.alpha.timeout-ms: alpha is a peer, and has no timeout-ms: remove the key"
        ),
        (
            "socket.path = \"/\(String(repeating: "s", count: 120))\"",
            "c.toml, line 1: socket.path = \"/\(String(repeating: "s", count: 120))\": must be an absolute path of at most 107 bytes"
        ),
        (
            "[exchange.mine]\nurl = \"https://x.example/\"\nprice = \"/p\"\ncredential = \"../key\"\nmarkets = { USD = {} }",
            "c.toml, line 4: exchange.mine.credential = \"../key\": must be the name of a credential, without a path"
        ),
    ])
    func `what can't be meant is an error that says what to write`(file: String, expected: String) {
        #expect(complaint(file: file) == expected)
    }

    @Test func `a key of a source of rates without an effect is a warning`() throws {
        let file = """
            [reference-rate.book]
            url = "https://rates.example/latest"
            base = "EUR"
            price = "/rates/{QUOTE}"
            time = "/date"
            time-is = "book"
            limits = ["1/1s"]
            """
        #expect(
            try read(file: file).warnings == [
                "c.toml: reference-rate.book.limits has no effect, and is ignored: rates are requested about four times a day"
            ])
    }

    @Test func `a named file must exist, the default one need not`() throws {
        let asked = try DaemonCommandLine(["--config", "/none.toml"])
        #expect(throws: SettingsError("/none.toml: No such file or directory")) {
            try Settings.read(commandLine: asked, environment: [:], uid: 0)
        }
        let directory = TemporaryDirectory()
        _ = try Settings.read(
            commandLine: DaemonCommandLine(),
            environment: ["XDG_CONFIG_HOME": directory.path, "HOME": directory.path], uid: 1000)
    }

    @Test func `a user has its own directories, a service those of systemd`() throws {
        let user = try read(
            environment: ["HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1000"], uid: 1000)
        #expect(
            user.directories
                == Directories(state: "/home/a/.local/state/btc-priced", runtime: "/run/user/1000/btc-priced"))
        // Nobody with this number has logged in.
        let bare = try read(environment: ["HOME": "/home/a", "XDG_STATE_HOME": "/s"], uid: 4_123_456_789)
        #expect(bare.directories == Directories(state: "/s/btc-priced", runtime: "/tmp/btc-priced-4123456789"))
        let service = try read(
            environment: ["STATE_DIRECTORY": "/var/lib/btc-priced", "RUNTIME_DIRECTORY": "/run/btc-priced:/run/x"],
            uid: 990)
        #expect(service.directories == Directories(state: "/var/lib/btc-priced", runtime: "/run/btc-priced"))
        #expect(throws: SettingsError.self) { try read(uid: 1000) }
        #expect(
            Directories.configurationPath(environment: ["HOME": "/home/a"], uid: 1000)
                == "/home/a/.config/btc-priced/config.toml")
        #expect(
            Directories.configurationPath(environment: ["STATE_DIRECTORY": "/x"], uid: 990)
                == "/etc/btc-priced/config.toml")
    }

    @Test(arguments: [
        ("https://api.binance.com", true), ("http://127.0.0.1:8080", true), ("https://[::1]:443/base", true),
        ("https://", false), ("binance.com", false), ("https://a b", false), ("https://a?x=1", false),
        ("https://a#x", false),
        ("file:///etc/passwd", false), ("https://a:99999", false), ("https://a:x", false), ("https://ä.de", false),
        ("http://::1:8080", false), ("http://a:b:80", false), ("https://[a]", false), ("https://[1:2]", false),
        ("wss://a", false), ("http://a_b-c.:1/x", true),
    ])
    func `addresses are checked`(text: String, expected: Bool) {
        #expect(URLRule.isExchange(text) == expected)
    }

    @Test(arguments: [
        ("wss://a.example", true), ("ws://127.0.0.1:8080/", true), ("wss://[::1]:443", true), ("wss://:443:443", false),
        ("wss://::1:443", false), ("wss://a/b", false), ("wss://a?b", false), ("wss://u@a", false),
        ("https://a", false),
    ])
    func `addresses of streams are checked`(text: String, expected: Bool) {
        #expect(URLRule.isStream(text) == expected)
    }

    @Test(
        arguments: [
            ("http://proxy:3128/", .http(host: "proxy", port: 3128)),
            ("socks5://[::1]:80", .socks5(host: "::1", port: 80)),
            ("http://proxy", nil), ("http://::1:8080", nil), ("http://a:b:80", nil), ("http://a:80/b", nil),
            ("https://a:80", nil),
        ] as [(String, HTTPTransportSettings.Proxy?)])
    func `addresses of proxies are checked`(text: String, expected: HTTPTransportSettings.Proxy?) {
        #expect(URLRule.proxy(text) == expected)
    }
}

extension DaemonCommandLine {
    init(_ arguments: [String]) throws {
        guard case .run(let line) = try Self.program.read(arguments) else { throw UsageError("nothing to run") }
        try self.init(line)
    }
}
