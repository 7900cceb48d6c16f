import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceServer
import BTCPriceVarlink
import Glibc
import Logging
import ServiceLifecycle
import Systemd
import UnixSignals

/// Puts the parts together, runs them, and ends them in the right order.
struct Composition {
    let settings: Settings
    let environment: [String: String]
    let logger: Logger

    /// The signals that end the daemon. A terminal that is closed ends the one started in it as a stop does, unless it was started
    /// to ignore that (nohup(1)).
    static let endingSignals: [UnixSignal] = [.sigterm, .sigint, .sighup].filter { number in
        var action = sigaction()
        sigaction(number.rawValue, nil, &action)
        // SIG_IGN is the address 1, which can't be compared as a function.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) != 1
    }

    /// Runs until the daemon is told to stop.
    func run() async throws {
        let now: TimeSource = { .now() }
        let manager = ServiceManager()
        let reporter = Reporter(logger: logger, now: now)
        let lock = try takeDirectories()
        let store = FilePriceStore(
            stateDirectory: settings.directories.state, runtimeDirectory: settings.directories.runtime, now: now)
        let stored = store.load()
        for problem in stored.problems { logger.error("\(problem)") }
        let client = try exchangeClient()
        let listener = try listeningSocket()

        let heartbeat = Heartbeat(now().boottime)
        let status = StatusLine(manager: manager)
        let publication = Publication()
        let (candidates, unusable) = try candidates(client, now: now)
        let fetch = FetchWithFallback(
            candidates: candidates, interval: settings.interval, now: now,
            clock: ContinuousClock())
        fetch.sources.resume(stored.rests)
        describe(fetch.sources, at: now().boottime)
        let keeper = PriceKeeper(
            fetch: fetch,
            persist: PersistLastValidPrice(store: store), clock: ContinuousClock(), interval: settings.interval,
            budget: settings.budget, now: now,
            publish: { state, toWatchers in
                publication.publish(state, toWatchers: toWatchers)
                status.show(state, at: now().boottime)
            },
            report: { event in
                if case .ticked = event {
                    heartbeat.beat(at: now().boottime)
                    publication.ticked()
                }
                reporter.report(event)
            })
        let ticker = OneSecondTicker(interval: settings.interval, clock: ContinuousClock(), target: keeper)
        let activity = ClientActivity(at: now().boottime)
        let control = TickControl(
            ticker: ticker, activity: activity, idleAfter: settings.pauseWhenIdle, now: now,
            report: { reporter.report($0) })
        let answers = Answers(
            instance: Self.newInstance(), startedAt: now(), settings: settings, keeper: keeper, control: control,
            sources: fetch.sources, unusable: unusable, store: store, now: now, logger: logger)
        let server = try PriceServer(
            listener: listener, instance: answers.instance, now: now, activity: activity,
            administrators: Administrators(group: Product.group),
            answer: { call, uid, clients in await answers.reply(to: call, of: uid, clients) },
            wake: { await control.clientCame() }, report: { reporter.report($0) })
        publication.connect(server, control)
        if let price = stored.price { await keeper.restore(price) }
        let observer = Observer(clock: ContinuousClock(), target: keeper, isPaused: { await ticker.isPaused })
        try server.start()
        manager.ready(status: StatusLine.text(await keeper.state))
        logger.info("Ready: answering at \(settings.socketPath).")

        // Ended from the last to the first: no tick after the socket is gone, and the quote is saved behind the last tick.
        let services: [any Service] = [
            Part { await client.shutdown() },
            Part {
                do { try store.flush() } catch { logger.error("\(error)") }
            },
            Part { server.stop() },
            ObserverService(observer: observer),
            Part(start: { await ticker.start() }) { await ticker.stop() },
            WatchdogService(
                manager: manager, server: server, heartbeat: heartbeat, isPaused: { await ticker.isPaused },
                longestSilence: settings.interval * 2 + settings.budget + .seconds(1), now: now),
            Part { manager.stopping() },
        ]
        var groupLogger = logger
        groupLogger.logLevel = max(.warning, logger.logLevel)
        var group = ServiceGroupConfiguration(services: services, logger: groupLogger)
        group.gracefulShutdownSignals = Self.endingSignals
        group.maximumGracefulShutdownDuration = .seconds(5)
        group.maximumCancellationDuration = .seconds(5)
        try await ServiceGroup(configuration: group).run()
        logger.info("Stopped.")
        _ = consume lock
    }

    private func takeDirectories() throws -> StateLock? {
        do {
            if let problem = try settings.directories.make() {
                logger.error("\(problem); the price goes on, but a reboot loses it")
            }
        } catch {
            throw StartFailure(description: "\(error)")
        }
        do {
            return try StateLock(directory: settings.directories.state)
        } catch {
            switch error {
            case .alreadyRunning(let pid):
                throw StartFailure(
                    description: "already running, pid \(pid.map(String.init) ?? "unknown"): "
                        + "it holds the lock on \(settings.directories.state)")
            case .unusable(let path, let reason):
                // The socket still tells whether another one runs.
                logger.error("cannot lock \(path): \(reason); the price goes on")
                return nil
            }
        }
    }

    private func exchangeClient() throws -> ExchangeClient {
        do {
            return try ExchangeClient(
                ExchangeClientSettings(
                    userAgent: "\(Product.name)/\(Product.version) (+\(Product.url))", caFile: settings.caFile,
                    proxy: settings.proxy, longestWait: settings.sources.map(\.timeout).max() ?? settings.budget))
        } catch {
            throw StartFailure(description: "\(error)", isConfiguration: true)
        }
    }

    private func listeningSocket() throws -> ListeningSocket {
        do {
            if let descriptor = try PassedSockets.listeningStream() { return ListeningSocket(inherited: descriptor) }
            return try ListeningSocket(path: settings.socketPath)
        } catch {
            throw StartFailure(description: "\(error)")
        }
    }

    private func candidates(
        _ client: ExchangeClient, now: @escaping TimeSource
    ) throws -> (asked: [FetchWithFallback<ContinuousClock>.Candidate], unusable: [SourceReport]) {
        let credentials = Credentials(environment: environment)
        var unusable: [SourceReport] = []
        let asked: [FetchWithFallback<ContinuousClock>.Candidate] = try settings.sources.enumerated().compactMap {
            index, source in
            var key: String?
            if let credential = source.exchange.credential {
                do {
                    key = try credentials.secret(credential)
                } catch {
                    throw StartFailure(description: "\(error)", isConfiguration: true)
                }
                if key == nil {
                    logger.notice(
                        "\(source.exchange.source.name) is passed over: it needs a key, the credential \(credential).")
                    unusable.append(
                        SourceReport(
                            withoutKey: source.exchange.source, address: source.url, order: Int64(index + 1)))
                    return nil
                }
            }
            if source.url != source.exchange.baseURL {
                logger.notice("\(source.exchange.source.name) is asked at \(source.url), which is not its own address.")
            }
            let access = Exchange.Access(client: client, baseURL: source.url, secondURL: source.secondURL, key: key)
            return .init(
                fetch: FetchLatestPrice(loader: source.exchange.loader(access), now: now), address: source.url,
                timeout: source.timeout, hedge: source.hedge)
        }
        return (asked, unusable)
    }

    /// What an operator would wonder about: who can't be asked every time, and who is not asked yet.
    private func describe(_ sources: Sources, at boottime: Int64) {
        let board = sources.board
        for entry in board.slow where board.entries.count > 1 {
            logger.info(
                "\(entry.source.name) can't be asked at every tick within its limit, only once in \(entry.health.pace.wholeMilliseconds) ms: it comes after those that can."
            )
        }
        for entry in board.entries {
            guard let rest = entry.health.rest, entry.health.breaker(at: boottime) == .open else { continue }
            logger.notice(
                "\(entry.source.name) still rests from before the start, until \(rest.until.wall.utcText): \(rest.reason)"
            )
        }
    }

    /// A name that no other start of a daemon has.
    private static func newInstance() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
