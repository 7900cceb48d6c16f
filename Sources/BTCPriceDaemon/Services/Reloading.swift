import BTCPriceCore
import BTCPriceNetworking
import BTCPriceServer
import Glibc
import Logging
import ServiceLifecycle
import Systemd
import UnixSignals

/// Takes a new configuration while the daemon runs: a good one is in force from the next tick on, a bad one changes nothing.
struct Reloading: Sendable {
    /// Reads the configuration anew, from all its places.
    let read: @Sendable () throws(SettingsError) -> Settings
    let running: RunningSettings
    let client: ExchangeClient
    let credentials: Credentials
    let keeper: PriceKeeper<TickClock>
    let ticker: OneSecondTicker<TickClock>
    let control: TickControl<TickClock>
    let server: PriceServer
    let level: SharedLogLevel
    let clock: TickClock
    let now: TimeSource
    let logger: Logger

    func reload() async {
        do {
            let settings = try read()
            try await apply(settings)
        } catch {
            logger.tell(
                .reloadRefused, "The new configuration is refused, and the old one stays: \(error)",
                ["error": "\(error)"])
        }
    }

    private func apply(_ settings: Settings) async throws {
        let old = running.value.settings
        // What may fail comes first: then nothing has changed.
        let candidates = try ConfiguredSources(
            settings, client: client, credentials: credentials, now: now, logger: logger)
        // What a file with trust anchors holds may have changed under its name.
        if settings.clientSettings != old.clientSettings || settings.caFile != nil {
            try client.apply(settings.clientSettings)
        }
        let fetch = FetchWithFallback(
            candidates: candidates.asked, interval: settings.interval, now: now, clock: clock,
            after: await keeper.sources)
        ConfiguredSources.describe(fetch.sources, at: now().boottime, logger: logger)
        candidates.describe(settings.rules, logger: logger)
        await keeper.apply(
            fetch, interval: settings.interval, budget: settings.budget, rules: settings.rules)
        // Before the ticker: the watchdog must know of a longer silence.
        running.value = RunningSettings.Value(settings: settings, unusable: candidates.unusable)
        await ticker.change(interval: settings.interval)
        await control.change(idleAfter: settings.pauseWhenIdle)
        server.change(settings.limits)
        level.level = settings.logLevel
        let changed = zip(old.entries, settings.entries).filter { $0.value != $1.value }.map(\.1.name)
        logger.tell(
            .reloaded,
            changed.isEmpty
                ? "The configuration was reloaded: nothing has changed."
                : "The configuration was reloaded: \(changed.joined(separator: ", ")).")
        let later = changed.filter(Settings.needsRestart)
        if !later.isEmpty {
            logger.tell(.needsRestart, "Takes effect at the next start only: \(later.joined(separator: ", ")).")
        }
    }
}

extension Settings {
    /// Whether a setting is looked at when the daemon starts, and not again.
    fileprivate static func needsRestart(_ name: String) -> Bool {
        ["state.directory", "runtime.directory", "socket.path"].contains(name)
    }
}

/// Reloads at each SIGHUP, telling systemd before and after.
struct ReloadService: Service {
    let signals: UnixSignalsSequence
    let manager: ServiceManager
    let reloading: Reloading
    let status: @Sendable () async -> String

    /// Whether SIGHUP is a wish to reload. For a daemon with a terminal it says that the terminal is gone: then it ends.
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
