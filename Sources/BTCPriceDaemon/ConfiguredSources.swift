import BTCPriceCore
import BTCPriceNetworking
import BTCPriceAPI
import Logging
import Systemd

/// The configured sources: those that can be requested, and those that can't.
struct ConfiguredSources {
    /// In the configured order.
    private(set) var asked: [FetchCandidate] = []
    /// Sources without the key that they require.
    private(set) var unusable: [SourceReport] = []

    /// - Throws: ``StartFailure`` if a credential can't be read.
    init(
        _ settings: Settings, client: ExchangeClient, credentials: Credentials, instance: String,
        now: @escaping TimeSource, logger: Logger
    ) throws {
        for (index, source) in settings.sources.enumerated() {
            let address: String
            let loader: any PriceLoader
            switch source.kind {
            case .peer(let name, let socket):
                address = socket
                loader = PeerFeed(name: name, path: socket, ownInstance: instance, now: now)
            case .exchange(let exchange, let url, let secondURL):
                address = url
                let known = exchange.source(at: url)
                var key: String?
                if let credential = exchange.credential {
                    do {
                        key = try credentials.secret(credential)
                    } catch {
                        throw StartFailure(description: "\(error)", isConfiguration: true)
                    }
                    if key == nil {
                        logger.tell(
                            .sourceNeedsKey, "\(known.name) is skipped: it needs a key, the credential \(credential).",
                            ["source": "\(known.name)"])
                        unusable.append(SourceReport(withoutKey: known, order: Int64(index + 1)))
                        continue
                    }
                }
                if url != exchange.baseURL {
                    logger.tell(
                        .sourceElsewhere,
                        "\(known.name) is requested at \(url), which is not the exchange's own address.",
                        ["source": "\(known.name)"])
                }
                loader = exchange.loader(.init(client: client, baseURL: url, secondURL: secondURL, key: key))
            }
            asked.append(
                .init(
                    fetch: FetchLatestPrice(loader: loader), address: address, timeout: source.timeout,
                    hedge: source.hedge))
        }
    }

    /// Logs a warning if prices in USDT are to be converted, but no source has the rate.
    func describe(_ rules: SelectionRules, logger: Logger) {
        let markets = asked.map(\.source.market)
        guard rules.peg == .convert, !markets.isEmpty, markets.allSatisfy(\.isInTether) else { return }
        logger.tell(
            .conversionImpossible,
            "currency.usdt is \"convert\", but no configured source has the rate of USDT, so there is no price. Add a dollar market, such as kraken."
        )
    }

    /// Logs the sources that can't be requested at every tick, and those with a cooldown from before the start.
    static func describe(_ sources: Sources, at boottime: Int64, logger: Logger) {
        let registry = sources.registry
        // If none can, some ticks have no source to request.
        let slow = registry.entries.indices.filter(registry.isSlow)
        let advice =
            slow.count < registry.entries.count
            ? "it comes after those that can" : "add another source, or make tick.interval-ms as long"
        for index in slow {
            let entry = registry.entries[index]
            logger.tell(
                .sourceSlow,
                "\(entry.source.name) can't be requested at every tick within its limit, only once in "
                    + "\(registry.pace(index).wholeMilliseconds) ms: \(advice).",
                ["source": "\(entry.source.name)"])
        }
        for (index, entry) in registry.entries.enumerated() where registry.isCoolingDown(index, at: boottime) {
            guard let cooldown = registry.cooldown(index) else { continue }
            logger.tell(
                .sourceStillRests,
                "\(entry.source.name) has a cooldown from before the start, until \(cooldown.until.wall.utcText): \(cooldown.reason)",
                ["source": "\(entry.source.name)"])
        }
    }
}

extension Settings {
    /// The sources whose URL is not the exchange's own.
    var elsewhere: [String] {
        sources.compactMap { source in
            guard case .exchange(let exchange, let url, _) = source.kind, url != exchange.baseURL else { return nil }
            return exchange.name
        }
    }

    /// The settings of the HTTP client.
    var clientSettings: HTTPTransportSettings {
        HTTPTransportSettings(
            userAgent: "\(Product.name)/\(Product.version)", caFile: caFile, proxy: proxy,
            connectTimeout: max(budget, sources.map(\.timeout).max() ?? budget) + .seconds(1))
    }
}
