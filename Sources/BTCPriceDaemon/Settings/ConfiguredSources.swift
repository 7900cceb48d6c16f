import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Logging
import Systemd

/// The configured sources of all currencies: those that can be requested, and those that can't or that are switched off.
struct ConfiguredSources: Sendable {
    /// The sources of one currency.
    private struct OfCurrency: Sendable {
        let settings: Settings.CurrencySettings
        /// In the configured order.
        var candidates: [FetchLatestPrice] = []
        /// The exchanges' candles, in the same order.
        var candles: [(source: String, loader: any CandleLoader)] = []
        /// Sources without the key that they require.
        var withoutKey: [SourceReport] = []
    }

    private var all: [OfCurrency]
    /// The sources that an administrator has switched off, by their names. One that is not configured may be again.
    var off: Set<String>
    /// The sources of reference rates, in their order.
    private(set) var rates: [any ReferenceRateLoader] = []
    /// The first of them that has the rates of past days; `nil` if none has.
    private(set) var rateHistory: (any RateHistoryLoader)?

    /// - Parameter off: The sources that are switched off.
    /// - Throws: ``StartFailure`` if a credential can't be read.
    init(
        _ settings: Settings, off: Set<String>, client: ExchangeClient, credentials: Credentials, instance: String,
        now: @escaping TimeSource, logger: Logger,
        report: @escaping @Sendable (String, StreamEvent) -> Void
    ) throws {
        self.off = off
        all = settings.currencies.map { OfCurrency(settings: $0) }
        var loaders: [Market: any PriceLoader] = [:]
        var streams: [Market: any PriceStream] = [:]
        for source in settings.sources {
            guard let exchange = source.exchange else { continue }
            let key = try Self.key(exchange.credential, credentials)
            if let credential = exchange.credential, key == nil {
                Self.tellOfMissing(credential, of: source.name, logger)
                for index in all.indices {
                    let currency = all[index].settings
                    guard let rank = currency.sources.firstIndex(where: { $0.name == source.name }),
                        let market = exchange.markets[currency.currency]
                    else { continue }
                    all[index].withoutKey.append(
                        SourceReport(
                            exchange.venue, market, at: source.address, order: Int64(rank + 1), use: .noKey))
                }
                continue
            }
            if source.address != exchange.baseURL {
                logger.tell(
                    .sourceElsewhere,
                    "\(source.name) is requested at \(source.address), which is not the exchange's own address.",
                    ["source": "\(source.name)"])
            }
            let access = Exchange.Access(
                client: client, baseURL: source.address, secondURL: source.secondURL, key: key)
            let currencies = settings.currencies.filter { $0.sources.contains { $0.name == source.name } }
            for loader in exchange.loaders(access, for: currencies.map(\.currency), now: now) {
                loaders[loader.market] = loader
            }
            if !source.streamURLs.isEmpty, source.reserve == nil, settings.changeInterval != nil {
                let exchangeStreams = exchange.streams(
                    client, urls: source.streamURLs, for: currencies.map(\.currency), now: now,
                    report: { report(source.name, $0) })
                streams.merge(exchangeStreams) { $1 }
            }
            // A reserve exchange is not requested for candles.
            for index in all.indices
            where all[index].settings.sources.contains(where: { $0.name == source.name && $0.reserve == nil }) {
                guard let loader = exchange.candleLoader(access, for: all[index].settings.currency) else { continue }
                all[index].candles.append((source.name, loader))
            }
        }
        for source in settings.rateSources {
            let key = try Self.key(source.description.credential, credentials)
            if let credential = source.description.credential, key == nil {
                Self.tellOfMissing(credential, of: source.name, logger)
                continue
            }
            let access = source.access(client, key: key)
            rates.append(source.loader(access, now: now))
            rateHistory = rateHistory ?? source.historyLoader(access, now: now)
        }
        for index in all.indices {
            let currency = all[index].settings
            all[index].candidates = currency.sources.compactMap { source -> FetchLatestPrice? in
                let loader: (any PriceLoader)? =
                    if let exchange = source.exchange {
                        exchange.markets[currency.currency].flatMap { loaders[$0] }
                    } else {
                        PeerFeed(name: source.name, path: source.address, ownInstance: instance, now: now)
                    }
                return loader.map {
                    FetchLatestPrice(
                        loader: $0, stream: streams[$0.market], address: source.address,
                        path: source.exchange?.description.target ?? "", timeout: source.timeout, hedge: source.hedge,
                        reserve: source.reserve)
                }
            }
        }
    }

    /// The peers that have sources which are not requested at the exchanges' own addresses.
    var peersElsewhere: [String] {
        all.flatMap(\.candidates).compactMap { $0.feed as? PeerFeed }.filter(\.isElsewhere).map(\.venue.name)
    }

    /// The sources to request, by currency, in the configured order.
    var asked: [(settings: Settings.CurrencySettings, candidates: [FetchLatestPrice])] {
        all.map { known in (known.settings, known.candidates.filter { !off.contains($0.name) }) }
    }

    /// The configured sources of a currency that are never requested, in their order.
    func unused(_ currency: Currency) -> [SourceReport] {
        guard let known = all.first(where: { $0.settings.currency == currency }) else { return [] }
        let switched = known.candidates.filter { off.contains($0.name) }.map { candidate in
            let rank = known.settings.sources.firstIndex { $0.name == candidate.name } ?? 0
            var report = SourceReport(
                candidate.venue, candidate.market, at: candidate.address, order: Int64(rank + 1), use: .untried)
            report.isOff = true
            return report
        }
        return (known.withoutKey + switched).sorted { $0.order < $1.order }
    }

    /// The currencies that have sources, but none that is not switched off.
    var withoutSource: [Currency] {
        zip(all, asked).compactMap { $0.candidates.isEmpty || !$1.candidates.isEmpty ? nil : $0.settings.currency }
    }

    /// The secret with this name; `nil` if there is none.
    private static func key(_ credential: String?, _ credentials: Credentials) throws(StartFailure) -> String? {
        do {
            return try credential.flatMap { try credentials.secret($0) }
        } catch {
            throw StartFailure(description: "\(error)", isConfiguration: true)
        }
    }

    private static func tellOfMissing(_ credential: String, of source: String, _ logger: Logger) {
        logger.tell(
            .sourceNeedsKey, "\(source) is skipped: it needs a key, the credential \(credential).",
            ["source": "\(source)"])
    }

    var plans: [CurrencyPlan] {
        asked.map { settings, candidates in
            CurrencyPlan(
                settings.currency, candidates, interval: settings.interval, rules: settings.rules,
                derivation: settings.derivation)
        }
    }

    /// The candle loaders that fill gaps of the history, by currency; none if the backfill is off.
    func backfill(_ settings: Settings) -> [Backfill.Lane] {
        guard settings.fillsHistory else { return [] }
        return all.map { known in
            .init(known.settings.currency, known.candles.filter { !off.contains($0.source) }.map(\.loader))
        }
    }

    /// Logs the sources that can't be requested at every tick, those with a cooldown from before the start, the currencies that are kept
    /// for others, and what keeps the sources from giving a price.
    /// - Parameter isStart: Whether the cooldowns are those from before the start.
    func describe(_ registry: SourceRegistry, isStart: Bool, at boottime: BootTime, logger: Logger) {
        // If no source can be requested at every tick, some ticks have no source to request.
        let currency = asked.first?.settings.currency
        let first = registry.entries.indices.filter { registry.entries[$0].source.market.currency == currency }
        let slow = first.filter(registry.isSlow)
        let advice =
            slow.count < first.count
            ? "it comes after those that can" : "add another source, or make the interval of the ticks as long"
        for index in slow {
            let entry = registry.entries[index]
            logger.tell(
                .sourceSlow,
                "\(entry.source.name) can't be requested at every tick within its limit, only once in "
                    + "\(registry.pace(index).wholeMilliseconds) ms: \(advice).",
                ["source": "\(entry.source.name)"])
        }
        describeSharedLimits(registry, logger: logger)
        for (index, entry) in registry.entries.enumerated() where isStart && registry.isCoolingDown(index, at: boottime)
        {
            guard let cooldown = registry.cooldown(index) else { continue }
            logger.tell(
                .sourceStillRests,
                "\(entry.source.name) has a cooldown from before the start, until \(cooldown.until.wall.utcText): \(cooldown.reason)",
                ["source": "\(entry.source.name)"])
        }
        for (settings, _) in asked where !settings.neededBy.isEmpty {
            let needing = settings.neededBy.map(\.rawValue).joined(separator: ", ")
            logger.tell(
                .currencyNeeded,
                "The price in \(settings.currency) is kept too, because that in \(needing) may be derived from it.")
        }
        describeLacks(logger: logger)
    }

    /// Logs what keeps the sources from giving a price: fewer exchanges than the quorum, or no rate of USDT to convert with.
    func describeLacks(logger: Logger) {
        for (settings, candidates) in asked where settings.rules.mode == .median && settings.derivation != .always {
            // A reserve comes only while no other has a price.
            let exchanges = Set(candidates.filter { $0.reserve == nil }.map { $0.venue.upstream ?? $0.name })
            guard exchanges.count < settings.rules.quorum else { continue }
            logger.tell(
                .quorumUnreachable,
                "quorum is \(settings.rules.quorum), but the sources of \(settings.currency) are of only \(exchanges.count) exchanges (\(exchanges.sorted().joined(separator: ", "))), so there is no price. Add a source, or make quorum smaller."
            )
        }
        guard let (settings, candidates) = asked.first(where: { $0.settings.currency == .usd }) else { return }
        let (rules, markets) = (settings.rules, candidates.map(\.market))
        guard rules.peg == .convert, !markets.isEmpty, markets.allSatisfy(\.isInTether) else { return }
        logger.tell(
            .conversionImpossible,
            "currency.usdt is \"convert\", but no configured source has the rate of USDT, so there is no price. Add a dollar market, such as kraken."
        )
    }

    /// Logs the exchanges that are the first source of several currencies, whose ticks need more requests together than the limit allows.
    private func describeSharedLimits(_ registry: SourceRegistry, logger: Logger) {
        // A price that is always derived requests nothing.
        let users = Dictionary(grouping: asked.filter { !$0.candidates.isEmpty }) { $0.candidates[0].name }
        for (name, users) in users.sorted(by: { $0.key < $1.key }) where users.count > 1 {
            guard let exchange = users[0].settings.sources.first(where: { $0.name == name })?.exchange,
                !exchange.description.sharesRequests,
                let index = registry.entries.firstIndex(where: { $0.source.name == name })
            else { continue }
            let needed = users.map { 60_000 / $0.settings.interval.wholeMilliseconds }.reduce(0, +)
            let allowed = 60_000 / max(1, registry.pace(index).wholeMilliseconds)
            guard needed > allowed else { continue }
            let currencies = users.map(\.settings.currency.rawValue).joined(separator: ", ")
            logger.tell(
                .limitShared,
                "The ticks of \(currencies) need \(needed) requests a minute to \(name), and its limit allows \(allowed): some ticks have no new price. Make an interval longer, or name another source first.",
                ["source": "\(name)"])
        }
    }
}

extension Settings {
    /// The sources whose URL is not the exchange's own.
    var elsewhere: [String] {
        sources.filter { source in source.exchange.map { $0.baseURL != source.address } ?? false }.map(\.name)
    }

    var clientSettings: HTTPTransportSettings {
        HTTPTransportSettings(
            userAgent: "\(Product.name)/\(Product.version)", caFile: caFile, proxy: proxy,
            connectTimeout: max(budget, sources.map(\.timeout).max() ?? budget) + .seconds(1))
    }
}
