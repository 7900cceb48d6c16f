import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Configuration
import Glibc
import Logging
import ServiceLifecycle
import Systemd
import UnixSignals

/// Reloads the configuration while the daemon runs. A valid one applies from the next tick on, an invalid one changes nothing.
struct Reloading: Sendable {
    let initial: Settings
    /// Reads the configuration again from all its places.
    let read: @Sendable () throws(SettingsError) -> Settings
    let running: Replaceable<RunningSettings>
    let client: ExchangeClient
    let credentials: Credentials
    let instance: String
    let engine: PriceEngine
    let ticker: OneSecondTicker
    let history: HistoryStore?
    let backfill: Backfill?
    let streams: StreamControl
    let rates: RateKeeper
    /// Receives the stream events of an exchange, with the exchange's name.
    let report: @Sendable (String, StreamEvent) -> Void
    let control: TickControl
    let server: PriceServer
    let level: Replaceable<Logger.Level>
    let now: TimeSource
    let logger: Logger

    func reload() async {
        do {
            let settings = try read()
            for warning in settings.warnings { logger.warning("\(warning)") }
            try await apply(settings)
        } catch {
            logger.tell(
                .reloadRefused, "The new configuration is refused, and the old one stays: \(error)",
                ["error": "\(error)"])
        }
    }

    private func apply(_ settings: Settings) async throws {
        let old = running.value.settings
        // The steps that may fail come first, so that a failure changes nothing.
        let candidates = try ConfiguredSources(
            settings, client: client, credentials: credentials, instance: instance, now: now, logger: logger,
            report: report)
        // The content of the file with trust anchors may have changed.
        if settings.clientSettings != old.clientSettings || settings.caFile != nil {
            try client.apply(settings.clientSettings)
        }
        await engine.apply(candidates.plans, budget: settings.budget, observes: settings.observeInterval)
        candidates.describe(await engine.registry, at: now().boottime, logger: logger)
        server.change(settings.currencies.map(\.currency))
        // Before the ticker: the watchdog must allow the longer silence.
        running.value = RunningSettings(settings: settings, unusable: candidates.unusable)
        await ticker.change(settings.intervals)
        await streams.change(settings.changeInterval)
        await rates.change(settings.rateSources.map { $0.loader(client, now: now) })
        await control.change(idleAfter: settings.pauseWhenIdle)
        server.change(settings.limits)
        if let changed = settings.history { history?.change(changed.store) }
        await backfill?.change(candidates.backfill(settings))
        level.value = settings.logLevel
        let (atStart, after) = (initial.values, settings.values)
        let changed = settings.changes(from: old)
        logger.tell(
            .reloaded,
            changed.isEmpty
                ? "The configuration was reloaded: no key has changed. Certificates were read again."
                : "The configuration was reloaded: \(changed.joined(separator: ", ")).")
        let later = changed.filter { Settings.needsRestart($0) && after[$0] != atStart[$0] }
        if !later.isEmpty {
            logger.tell(.needsRestart, "Takes effect at the next start only: \(later.joined(separator: ", ")).")
        }
    }
}

extension Settings {
    /// The names of the settings that have changed, and of the tables that describe exchanges or reference rates.
    func changes(from old: Settings) -> [String] {
        let (before, after) = (old.values, values)
        let names = entries.map(\.name) + old.entries.map(\.name).filter { after[$0] == nil }
        let tables = Set(descriptions.keys).union(old.descriptions.keys).sorted()
        return names.filter { before[$0] != after[$0] } + tables.filter { descriptions[$0] != old.descriptions[$0] }
    }

    /// The values by the names of the settings.
    fileprivate var values: [String: RawValue?] {
        Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0.value) })
    }

    /// Whether a setting is read only when the daemon starts.
    fileprivate static func needsRestart(_ name: String) -> Bool {
        ["state.directory", "runtime.directory", "socket.path", "history.enabled"].contains(name)
    }
}

/// Reloads at each SIGHUP, and notifies systemd before and after.
struct ReloadService: Service {
    let signals: UnixSignalsSequence
    let manager: ServiceManager
    let reloading: Reloading
    let status: @Sendable () async -> String

    /// Whether SIGHUP means reload. If the process has a terminal, SIGHUP means that the terminal has closed, and the daemon ends.
    static var isWanted: Bool {
        let terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0 else { return true }
        close(terminal)
        return false
    }

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            manager.reloading()
            await reloading.reload()
            manager.ready(status: await status())
        }
    }
}
