import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Configuration
import Files
import Glibc
import Logging
import Systemd
import UnixSignals

/// Creates the parts of the daemon, runs them, and ends them in the right order.
struct Assembly {
    let settings: Settings
    let environment: [String: String]
    let logger: Logger
    let level: Replaceable<Logger.Level>
    /// Reads the settings again, for a reload.
    let readAnew: @Sendable () throws(SettingsError) -> Settings

    /// The signals that end the daemon. Closing the terminal ends a daemon started in it, unless it ignores SIGHUP (nohup(1)).
    static let endingSignals: [UnixSignal] = [.sigterm, .sigint, .sighup].filter { number in
        var action = sigaction()
        sigaction(number.rawValue, nil, &action)
        // SIG_IGN is the address 1, which can't be compared as a function.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) != 1
    }

    /// Runs until the daemon is stopped.
    func run() async throws {
        let loop = TickLoop()
        // Everything runs on the loop's thread, except the socket and the calls that need more than the held price.
        try await withTaskExecutorPreference(loop.executor) { try await run(on: loop) }
    }

    private func run(on loop: TickLoop) async throws {
        // Checked before the socket opens: a client that connects may close the terminal, and then the check can't detect it.
        let isReloadWanted = ReloadService.isWanted
        let now: TimeSource = { .now() }
        let manager = ServiceManager()
        let reporter = Reporter(logger: logger, now: now)
        let lock = try takeDirectories()
        let store = FilePriceStore(
            stateDirectory: settings.directories.state, runtimeDirectory: settings.directories.runtime, now: now)
        let stored = store.load()
        for problem in stored.problems { logger.tell(.keptDamaged, "\(problem)") }
        let client = try exchangeClient(on: loop)
        let (listener, address) = try listeningSocket()

        let heartbeat = Heartbeat(now().boottime)
        let status = StatusLine(manager: manager, now: now)
        let credentials = Credentials(environment: environment)
        // A random name that is unique to this start of the daemon.
        let instance = UInt64.random(in: .min ... .max).padded(16, radix: 16)
        let makeSources = { @Sendable (settings: Settings, off: Set<String>) throws -> ConfiguredSources in
            try ConfiguredSources(
                settings, off: off, client: client, credentials: credentials, instance: instance, now: now,
                logger: logger,
                report: { reporter.report($1, ofStream: $0) })
        }
        // A start forgets what was switched off.
        let sources = try makeSources(settings, [])
        let running = Replaceable(RunningSettings(settings: settings, sources: sources))
        let historyClock = HistoryClock(now: now)
        let archive = settings.history.map { history in
            HistoryStore(
                directory: settings.directories.state, settings: history, clock: historyClock,
                report: { reporter.report($0) })
        }
        let history = archive.map { PriceHistory(store: $0, clock: historyClock) }
        let persist = PersistLastValidPrice(store: store, report: { reporter.report($0) })
        let engine = PriceEngine(
            sources.plans, clock: loop.clock, budget: settings.budget, executor: loop.executor, now: now,
            subscribers: [persist, status], history: history,
            report: { event in
                if case .ticked = event { heartbeat.beat(at: now().boottime) }
                reporter.report(event)
            })
        await engine.resume(stored.cooldowns)
        let suspend = SuspendMonitor(engine: engine, client: client, clock: loop.clock, logger: logger)
        let ticker = OneSecondTicker(clock: loop.clock, target: suspend, executor: loop.executor)
        let activity = ClientActivity(at: now().boottime)
        let streams = StreamControl(engine: engine, activity: activity, now: now)
        let rateFile = RateFile(stateDirectory: settings.directories.state)
        let background = { BackgroundWork(clock: loop.clock, executor: loop.executor) }
        let (observing, rating, searching, dating) = (background(), background(), background(), background())
        let rates = RateKeeper(
            engine: engine, store: rateFile, background: rating, clock: loop.clock, now: now,
            report: { reporter.report($0) })
        let control = TickControl(
            ticker: ticker, background: [observing, rating, searching, dating], activity: activity, now: now,
            report: { reporter.report($0) })
        let past = archive.flatMap { archive in
            history.map { history in
                let backfill = Backfill(
                    engine: engine, history: history, archive: archive,
                    background: searching, clock: loop.clock, now: { historyClock.now },
                    report: { reporter.report($0) })
                let rateHistory = RateHistoryKeeper(
                    engine: engine, store: rateFile, background: dating, clock: loop.clock,
                    now: { historyClock.now }, report: { reporter.report($0) })
                let calls = HistoryCalls(
                    history: history, store: archive,
                    fetch: { currency, seconds, user in
                        if await control.ticking == .paused { return .failed(seconds, "the ticks are paused") }
                        return await backfill.fetch(currency, at: seconds, for: user)
                    },
                    derivation: { currency in
                        guard let base = await engine.derivations[currency] else { return nil }
                        return (base, await rateHistory.history)
                    }, now: { historyClock.now })
                return (backfill: backfill, calls: calls, rates: rateHistory)
            }
        }
        let reloads = isReloadWanted ? Replaceable(StatusMessage.Reloads()) : nil
        // Set before the socket opens.
        let reconfiguring = Replaceable<Reloading?>(nil)
        let answers = CallHandler(
            instance: instance, startedAt: now(), running: running, directories: settings.directories,
            engine: engine, control: control, store: store, persist: persist,
            history: past?.calls, backfill: past?.backfill, reloads: reloads,
            turn: { await reconfiguring.value?.turn($0, on: $1) }, now: now, logger: logger)
        let server = try PriceServer(
            listener: listener, instance: instance, now: now, activity: activity,
            administrators: Administrators(group: Product.group),
            answer: { call, uid, clients in await answers.answer(to: call, of: uid, clients) },
            changesAreWatched: { await streams.follow() },
            wake: { await control.clientCame() },
            report: { reporter.report($0) })
        await engine.subscribe(server)
        if let history { await engine.subscribe(history.episodes) }
        await engine.subscribe(control)
        await engine.subscribe(streams)
        if let backfill = past?.backfill { await engine.subscribe(backfill) }
        for price in stored.prices { await engine.restore(price) }
        let parts = Parts(
            running: running, client: client, engine: engine, ticker: ticker, history: archive,
            episodes: history?.episodes, backfill: past?.backfill, streams: streams, rates: rates,
            rateHistory: past?.rates,
            control: control, server: server, level: level,
            now: now, logger: logger)
        await parts.apply(settings, sources, isStart: true)
        archive?.open(
            unstored: { history?.unstored(of: $0) ?? [] },
            restored: { currency, candles in history?.restore(candles, of: currency) })
        let reloading = Reloading(
            initial: settings, read: readAnew, makeSources: makeSources, parts: parts, logger: logger)
        reconfiguring.value = reloading
        // Trapped before READY=1, since a SIGHUP right after it must not end the daemon.
        let reload = isReloadWanted ? await UnixSignalsSequence(trapping: .sighup) : nil
        let signals = suspend.follow(control)
        // Started before the socket opens: a client that pauses the ticks must find them running.
        await engine.startFeeds()
        await ticker.start()
        try server.start()
        manager.ready(status: StatusLine.text(await engine.state))
        logger.tell(.ready, "Ready: answering at \(address).")

        // They end in reverse: no tick follows the close of the socket, and the quote is saved after the last tick.
        var services: [any Service] = [
            CleanUp { await client.shutdown() },
            CleanUp {
                do { try store.flush() } catch { logger.tell(.saveFailed, "\(error)") }
            },
            CleanUp {
                history?.close()
                await archive?.close(within: .seconds(3))
            },
            CleanUp { rateFile.flush() },
            CleanUp { server.stop() },
            SocketGuardService(listener: listener, clock: loop.clock),
            BackgroundService {
                await Observer.run(observing, interval: { running.value.settings.observeInterval }) {
                    await engine.observe()
                }
            },
            BackgroundService { await rates.run() },
            CleanUp {
                await ticker.stop()
                await engine.stopFeeds()
            },
            WatchdogService(
                manager: manager, server: server, heartbeat: heartbeat, isPaused: { await ticker.isPaused },
                running: running, clock: loop.clock, now: now),
        ]
        if let past {
            services.append(BackgroundService { await past.backfill.run() })
            services.append(BackgroundService { await past.rates.run() })
        }
        if let reload, let reloads {
            services.append(
                ReloadService(
                    signals: reload, manager: manager, reloading: reloading, counts: reloads,
                    status: { StatusLine.text(await engine.state) }))
        }
        services.append(CleanUp { manager.stopping() })
        try await Services(services: services, executor: loop.executor, logger: logger)
            .run(until: Self.endingSignals.filter { reload == nil || $0 != .sighup })
        logger.tell(.stopped, "Stopped.")
        withExtendedLifetime(signals) {}
        _ = consume lock
    }

    private func takeDirectories() throws -> StateLock? {
        if let problem = try settings.directories.make() {
            logger.tell(.stateUnusable, "\(problem); the price is still updated, but a reboot loses it")
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
                // The socket still shows whether another daemon runs.
                logger.tell(.stateUnusable, "cannot lock \(path): \(reason); prices are still served")
                return nil
            }
        }
    }

    private func exchangeClient(on loop: TickLoop) throws -> ExchangeClient {
        do {
            return try ExchangeClient(settings.clientSettings, on: loop)
        } catch {
            throw StartFailure(description: "\(error)", isConfiguration: true)
        }
    }

    /// Opens the socket, or takes the one from systemd.
    /// - Returns: The socket, and its address for people.
    private func listeningSocket() throws -> (ListeningSocket, String) {
        do {
            if let descriptor = try PassedSockets.listeningStream() {
                return (ListeningSocket(inherited: descriptor), "the socket that systemd opened")
            }
            return (try ListeningSocket(path: settings.socketPath), settings.socketPath)
        } catch {
            throw StartFailure(
                description: (["\(error)"] + [PassedSockets.notOurs].compactMap(\.self)).joined(separator: "; "))
        }
    }
}
