import BTCPriceCore
import BTCPriceSocket
package import Configuration

extension ExchangeDescription {
    /// The keys of a description, for advice on a misspelled one.
    private static let keys = [
        "url", "second-url", "name", "markets", "price", "bid", "ask", "time", "time-is", "time-offset-s",
        "time-offset-is",
        "sequence",
        "row", "require", "expect",
        "error", "limited", "unavailable", "limits", "weight", "cache-ms", "largest-body", "headers", "credential",
        "upstream", "xml",
    ]

    /// Reads a description.
    /// - Parameters:
    ///   - table: The values of its table, `[exchange.NAME]`.
    ///   - isOfRates: Whether it describes a source of reference rates, `[reference-rate.NAME]`. It has a `base` instead of markets.
    /// - Throws: ``SettingsError`` with the place and the key, for a value that is missing, unknown or not valid.
    package init(
        _ name: String, _ table: ConfigurationTable, isOfRates: Bool = false
    ) throws(SettingsError) {
        guard Market.isVenueName(name), name != Market.medianName else {
            throw table.error(
                nil,
                "'\(name)' can't be the name of an exchange: write lower-case letters, digits and hyphens, a letter first, at most 32"
            )
        }
        self.name = name
        // First: a misspelled key is else reported as a missing one.
        try table.finish(
            known: Self.keys.filter { !isOfRates || $0 != "markets" } + (isOfRates ? ["base", "history"] : []))
        let url = try table.required("url", example: "\"https://api.example.com/ticker?pair={name}\"")
        let (base, target) = try Self.parts(of: url, "url", table)
        (baseURL, self.target) = (base, target)
        secondURL = try table.text("second-url").map { text throws(SettingsError) in
            try Self.parts(of: text, "second-url", table).base
        }
        let nameTemplate = try table.text("name") ?? "{BASE}{QUOTE}"
        let markets =
            isOfRates
            ? try Self.rates(table, name, nameTemplate: nameTemplate)
            : try Self.markets(table, name, nameTemplate: nameTemplate)
        self.markets = markets

        let rowParts = ["of", "where", "is"].map { "row.\($0)" }
        let row = try rowParts.map { key throws(SettingsError) in try table.text(key) }
        if row.contains(where: { $0 != nil }) {
            guard let array = row[0], let place = row[1], let value = row[2] else {
                throw table.error(
                    "row", "needs three parts: row = { of = \"/data\", where = \"/symbol\", is = \"{name}\" }")
            }
            self.row = Row(
                array: try Self.pointer(array, "row.of", table), place: try Self.pointer(place, "row.where", table),
                value: value)
        } else {
            self.row = nil
        }
        price = try Self.place("price", table)
        bid = try Self.place("bid", table)
        ask = try Self.place("ask", table)
        guard (bid == nil) == (ask == nil) else {
            throw table.error(bid == nil ? "ask" : "bid", "bid and ask go together")
        }
        guard price != nil || bid != nil else {
            throw table.error(
                nil, "it has no price: write price = \"/…\", where the last price is in the body, or bid and ask")
        }
        time = try Self.place("time", table)
        timeMeaning = try table.choice("time-is", TimeMeaning.self)
        guard (time == nil) == (timeMeaning == nil) else {
            throw table.error(
                time == nil ? "time-is" : "time",
                "time and time-is go together: time-is = \"trade\", \"book\" or \"reply\" says what the time means")
        }
        timeOffset = Int64(try table.integer("time-offset-s", -86_400...86_400) ?? 0) * 1000
        timeOffsetMeaning = try table.choice("time-offset-is", TimeOffsetMeaning.self) ?? .always
        sequence = try Self.place("sequence", table)
        required = try Self.required("require", table)
        expected = try Self.required("expect", table)
        errors = try table.list("error").map { text throws(SettingsError) in
            // It starts at the body, with or without the sign for that.
            try Self.pointer(text.hasPrefix("//") ? String(text.dropFirst()) : text, "error", table)
        }
        limited = try table.list("limited").map { $0.lowercased() }
        unavailable = try table.list("unavailable").map { $0.lowercased() }
        credential = try table.text("credential")
        guard credential.map({ $0.isWord(with: "._-") && !$0.hasPrefix(".") }) ?? true else {
            throw table.error("credential", "must be the name of a credential, without a path")
        }
        headers = try Self.headers(table, credential: credential)
        element = try table.text("xml")
        longestBody = try Self.size(table) ?? HTTPRequest.usualBody
        let weight = try table.integer("weight", 1...10_000) ?? 1
        let limits = try table.list("limits").map { text throws(SettingsError) in try Self.limit(text, weight, table) }
        venue = Venue(
            name, limits: limits.isEmpty ? [Self.usualLimit] : limits,
            cacheTime: .milliseconds(try table.integer("cache-ms", 0...600_000) ?? 0),
            upstream: try table.text("upstream"))
        guard !isOfRates || timeMeaning == .book else {
            throw table.error("time", "must be the place of the day of the rates, with time-is = \"book\"")
        }
        history = try table.text("history")
        if let history {
            guard history.hasPrefix("/"), ["{FROM}", "{TO}"].allSatisfy(history.holds) else {
                throw table.error("history", "must be a path after the host of url, with {FROM} and {TO} for the days")
            }
            try Self.checkPlaceholders(history, of: Placeholders.ofHistory, "history", table)
            guard self.row != nil, time.flatMap(Place.init)?.isInBody == false else {
                throw table.error("history", "needs a row for each rate, with its day: row, and time in the row")
            }
        }
        try check(table)
    }

    /// The limit of an exchange that publishes none.
    private static let usualLimit = RequestLimit(1, per: .seconds(1))

    /// What has no effect in a table, in words.
    package static func warnings(on table: ConfigurationTable) throws(SettingsError) -> [String] {
        var warnings: [String] = []
        if try hasIgnoredPath(table) {
            warnings.append("second-url: its path has no effect, that of url is requested there, too: remove the path")
        }
        for (code, _) in table.tables(in: "markets") {
            guard let successor = Currency.successor(of: code) else { continue }
            warnings.append("markets: \(code) was replaced by \(successor), and the market is ignored")
        }
        let needs = [("weight", "limits"), ("time-offset-s", "time"), ("time-offset-is", "time")]
        for (key, other) in needs where table.has(key) && !table.has(other) {
            warnings.append("\(key): it has no effect without \(other)")
        }
        return warnings
    }

    /// Whether the table's `second-url` has a path that is not that of `url`.
    private static func hasIgnoredPath(_ table: ConfigurationTable) throws(SettingsError) -> Bool {
        guard let second = try table.text("second-url"), let url = try table.text("url") else { return false }
        let target = try parts(of: second, "second-url", table).target
        return try !["", "/", parts(of: url, "url", table).target].contains(target)
    }

    /// Splits a URL into scheme, host and port, and the rest.
    private static func parts(
        of url: String, _ key: String, _ table: ConfigurationTable
    ) throws(SettingsError) -> (base: String, target: String) {
        let scheme = url.prefix { $0 != ":" }
        let rest = url.dropFirst(scheme.count)
        guard scheme == "https" || scheme == "http", rest.hasPrefix("://") else {
            throw table.error(key, "must begin with https://")
        }
        let authority = rest.dropFirst(3).prefix { !"/?#".contains($0) }
        let target = rest.dropFirst(3 + authority.count)
        let base = "\(scheme)://\(authority)"
        guard !authority.isEmpty, !authority.contains("{"), HTTPRequest(base) != nil else {
            throw table.error(key, "must have a host, and no user, password or placeholder before the path")
        }
        guard !target.contains("#") else {
            throw table.error(key, "must have no fragment: remove '#' and what follows it")
        }
        guard scheme == "https" || HTTPRequest(base)?.origin.isLoopback == true else {
            throw table.error(key, "must begin with https://: prices over http can be forged, except from this machine")
        }
        try checkPlaceholders(String(target), of: Placeholders.ofRequests, key, table)
        return (base, String(target))
    }

    private static func checkPlaceholders(
        _ text: String, of allowed: [String], _ key: String, _ table: ConfigurationTable
    ) throws(SettingsError) {
        guard let unknown = Placeholders.unknown(in: text, allowed: allowed) else { return }
        let list = allowed.map { "{\($0)}" }.joined(separator: ", ")
        throw table.error(key, "{\(unknown)} is not a placeholder here; there are \(list)")
    }

    /// The markets: `markets = { EUR = {}, USD = { quote = "USDT" } }`.
    private static func markets(
        _ table: ConfigurationTable, _ exchange: String, nameTemplate: String
    ) throws(SettingsError) -> [DescribedMarket] {
        try checkPlaceholders(nameTemplate, of: Placeholders.ofNames, "name", table)
        var markets: [DescribedMarket] = []
        for (code, key) in table.tables(in: "markets") where Currency.successor(of: code) == nil {
            let quote = try table.text("\(key).quote") ?? (code == "USDT-USD" ? "USD" : code)
            let base = code == "USDT-USD" ? "USDT" : "BTC"
            guard code == "USDT-USD" || Currency(rawValue: code) != nil else {
                throw table.error(key, "'\(code)' is not a currency: write its three capital letters, such as EUR")
            }
            guard quote == code || (code == "USD" && quote == "USDT") || code == "USDT-USD" else {
                throw table.error("\(key).quote", "only USD can have another quote, USDT")
            }
            let name = try table.text("\(key).name") ?? Placeholders(base: base, quote: quote).fill(nameTemplate)
            let keys = try table.list("\(key).key")
            markets.append(
                DescribedMarket(
                    market: Market(exchange, "\(base)/\(quote)"), base: base, quote: quote, name: name,
                    keys: keys.isEmpty ? [name] : keys))
        }
        guard markets.contains(where: { !$0.isRate }) else {
            let listed = ((try? table.list("markets")) ?? []).filter { Currency(rawValue: $0) != nil }
            let example = (listed.isEmpty ? ["EUR"] : listed).map { "\($0) = {}" }.joined(separator: ", ")
            throw table.error(
                "markets", "must be a table of the exchange's currencies: write markets = { \(example) }")
        }
        return markets
    }

    /// The rates of all currencies per one of the base.
    private static func rates(
        _ table: ConfigurationTable, _ source: String, nameTemplate: String
    ) throws(SettingsError) -> [DescribedMarket] {
        try checkPlaceholders(nameTemplate, of: Placeholders.ofNames, "name", table)
        let base = try table.required("base", example: "\"EUR\"")
        guard let known = Currency(rawValue: base) else {
            throw table.error("base", "is not a currency: write its three capital letters, such as EUR")
        }
        // The error of the first one is shown if there is no rate at all.
        let wanted = [Currency.usd, .eur] + Currency.all.filter { ![.usd, .eur].contains($0) }
        return wanted.filter { $0 != known }.map { currency in
            let name = Placeholders(base: base, quote: currency.rawValue).fill(nameTemplate)
            return DescribedMarket(
                market: Market(source, "\(base)/\(currency)"), base: base, quote: currency.rawValue, name: name,
                keys: [name])
        }
    }

    /// Places and the values there: `require = { "/symbol" = "{name}" }`.
    private static func required(
        _ key: String, _ table: ConfigurationTable
    ) throws(SettingsError) -> [(place: String, value: Required)] {
        try table.members(key).map { entry throws(SettingsError) in
            let value: Required
            switch entry.value {
            case .text(let text): value = .text(text)
            case .integer(let number): value = .integer(Int64(number))
            case .flag(let isOn): value = .flag(isOn)
            case .list, .other: throw table.error(entry.key, "must be a text, a whole number, true or false")
            }
            try check(entry.name, entry.key, table)
            return (entry.name, value)
        }
    }

    /// A place in the body, with placeholders.
    private static func place(_ key: String, _ table: ConfigurationTable) throws(SettingsError) -> String? {
        guard let text = try table.text(key) else { return nil }
        try check(text, key, table)
        return text
    }

    /// Checks a place: a pointer with placeholders.
    private static func check(_ text: String, _ key: String, _ table: ConfigurationTable) throws(SettingsError) {
        try checkPlaceholders(text, of: Placeholders.ofBodies, key, table)
        guard Place(text) != nil else { throw mistake(in: text, key, table) }
    }

    private static func pointer(
        _ text: String, _ key: String, _ table: ConfigurationTable
    ) throws(SettingsError) -> JSONPointer {
        guard let pointer = JSONPointer(text) else { throw mistake(in: text, key, table) }
        return pointer
    }

    /// Says how to write a place that is not a JSON pointer: `$.a[0].b`, `.a[0].b`, `a.0.b` and `a/0/b` are `/a/0/b`, and
    /// `//a/0/b` if the text begins at the body and places begin at a row.
    private static func mistake(in text: String, _ key: String, _ table: ConfigurationTable) -> SettingsError {
        if text.hasPrefix("/") {
            return table.error(
                key, "'\(text)' is not a JSON pointer (RFC 6901): write ~0 for '~' and ~1 for '/' in a name")
        }
        let beginsAtBody = text.hasPrefix("$")
        let names = text.dropFirst(beginsAtBody ? 1 : 0).split { "./[]\"'".contains($0) }
        let isInRow = !table.tables(in: "row").isEmpty && !key.hasPrefix("row.")
        let pointer = names.map { "/" + JSONPointer.escaped(String($0)) }.joined()
        let advice =
            beginsAtBody && isInRow
            ? "a place in the row, such as /last, or /\(pointer), which is the same for each market" : pointer
        return table.error(key, "'\(text)' is not a JSON pointer (RFC 6901): write \(advice)")
    }

    /// Headers that frame a message or lead it elsewhere (RFC 9110, RFC 9112), which only the client sets.
    private static let reservedHeaders: Set<String> = [
        "host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect",
        "accept-encoding", "user-agent",
    ]

    private static func headers(
        _ table: ConfigurationTable, credential: String?
    ) throws(SettingsError) -> [(name: String, value: String)] {
        let headers = try table.members("headers").map { entry throws(SettingsError) in
            guard case .text(let value) = entry.value, HTTPRequest.isSendable(value) else {
                throw table.error(entry.key, "must be a text on one line")
            }
            guard entry.name.isWord(with: "!#$%&'*+.^_`|~-"), !reservedHeaders.contains(entry.name.lowercased())
            else {
                throw table.error(entry.key, "can't be set here")
            }
            return (name: entry.name, value: value)
        }
        guard headers.contains(where: { $0.value.holds("{credential}") }) == (credential != nil) else {
            throw table.error("credential", "goes together with a header that contains {credential}")
        }
        return headers
    }

    /// `2MiB`, `64KiB`
    private static func size(_ table: ConfigurationTable) throws(SettingsError) -> Int? {
        guard let text = try table.text("largest-body") else { return nil }
        guard let unit = ["KiB": 1 << 10, "MiB": 1 << 20][text.suffix(3)],
            let number = text.dropLast(3).wholeNumber(digits: 4), !text.hasPrefix("0"), number * unit <= 4 << 20
        else { throw table.error("largest-body", "must be a size up to \"4MiB\", such as \"256KiB\"") }
        return number * unit
    }

    /// `10/1s`: so many requests in so many seconds.
    private static func limit(
        _ text: String, _ weight: Int, _ table: ConfigurationTable
    ) throws(SettingsError) -> RequestLimit {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].hasSuffix("s"), let number = parts[0].wholeNumber(digits: 9),
            let seconds = parts[1].dropLast().wholeNumber(digits: 6), number >= weight, seconds > 0
        else {
            let number = Int(text.prefix { $0.isASCII && $0.isNumber }) ?? 60
            throw table.error(
                "limits",
                "'\(text)' is not a limit: write \"\(number)/60s\" for \(number) requests in any 60 seconds"
                    + (weight > 1 ? ", at least the weight of one" : "")
            )
        }
        return RequestLimit(number / weight, per: .seconds(seconds))
    }

    /// Checks what only all values together show.
    private func check(_ table: ConfigurationTable) throws(SettingsError) {
        var known: Set<[String]> = []
        for market in markets {
            let url = url(for: [market], at: baseURL)
            guard HTTPRequest(url) != nil else { throw table.error("url", "is not valid: \(url)") }
            let places = [price, bid].compactMap { $0.map { market.placeholders(key: market.keys[0]).fill($0) } }
            let values = row.map { [market.placeholders().fill($0.value)] } ?? []
            guard known.insert([url] + places + values).inserted else {
                throw table.error(
                    "markets",
                    "two markets would get the same price: put {name} into url, row, or the place of the price")
            }
        }
    }

    /// Whether a body of another market would be noticed.
    package var namesTheMarket: Bool {
        row != nil || (price ?? bid ?? "").contains("{")
            || (required + expected).contains { $0.place.contains("{") || $0.value.hasPlaceholder }
    }
}
