import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import Configuration
import Glibc
import Logging
import Systemd
import UnixSignals

/// Reloads the configuration while the daemon runs, and switches sources off and on. A valid configuration applies from the next tick on,
/// an invalid one changes nothing.
actor Reloading {
    /// What became of a switch.
    struct Turned: Sendable {
        /// Whether the source was not switched so before.
        let isChange: Bool
        /// The currencies whose sources are all switched off now.
        let withoutSource: [Currency]
    }

    /// The settings of the start.
    let initial: Settings
    /// Reads the configuration again from all its places.
    let read: @Sendable () throws(SettingsError) -> Settings
    /// Makes the sources of a configuration. It throws if a credential can't be read.
    let makeSources: @Sendable (Settings, Set<String>) throws -> ConfiguredSources
    let parts: Parts
    let logger: Logger
    /// Ends when the last change is in use.
    private var last: Task<Void, Never>?

    init(
        initial: Settings, read: @escaping @Sendable () throws(SettingsError) -> Settings,
        makeSources: @escaping @Sendable (Settings, Set<String>) throws -> ConfiguredSources, parts: Parts,
        logger: Logger
    ) {
        (self.initial, self.read, self.makeSources) = (initial, read, makeSources)
        (self.parts, self.logger) = (parts, logger)
    }

    /// Reads and applies the configuration. What is switched off stays off.
    /// - Returns: Why the configuration is refused; `nil` if it is in use.
    func reload() async -> String? { await inTurn { await self.applyAnew() } }

    /// Switches a source off, so that it is not requested, or on again: at the next start it is on.
    /// - Returns: `nil` if no source of this name is configured.
    func turn(_ source: String, on: Bool) async -> Turned? {
        await inTurn { [parts] in
            let (settings, sources) = (parts.running.value.settings, parts.running.value.sources)
            guard settings.sources.contains(where: { $0.name == source }) else { return nil }
            var changed = sources
            if on { changed.off.remove(source) } else { changed.off.insert(source) }
            let isChange = changed.off != sources.off
            if isChange {
                await parts.use(settings, changed)
                if !on { changed.describeLacks(logger: parts.logger) }
            }
            return Turned(isChange: isChange, withoutSource: changed.withoutSource)
        }
    }

    /// Makes one change after the other: their steps must not mix.
    private func inTurn<Result: Sendable>(_ change: @escaping @Sendable () async -> Result) async -> Result {
        let before = last
        let task = Task {
            await before?.value
            return await change()
        }
        last = Task { _ = await task.value }
        return await task.value
    }

    private func applyAnew() async -> String? {
        do {
            let settings = try read()
            for warning in settings.warnings { logger.warning("\(warning)") }
            let old = parts.running.value.settings
            // The steps that may fail come first, so that a failure changes nothing.
            let sources = try makeSources(settings, parts.running.value.sources.off)
            // The content of the file with trust anchors, or the system's authorities, may have changed.
            try parts.client.apply(settings.clientSettings)
            await parts.apply(settings, sources, isStart: false)
            tell(settings, old)
            return nil
        } catch {
            logger.tell(
                .reloadRefused, "The new configuration is refused, and the old one stays: \(error)",
                ["error": "\(error)"])
            return "\(error)".printable
        }
    }

    private func tell(_ settings: Settings, _ old: Settings) {
        parts.episodes?.reloaded()
        let (atStart, after) = (initial.values, settings.values)
        let changed = settings.changes(from: old)
        logger.tell(
            .reloaded,
            changed.isEmpty
                ? "The configuration was reloaded: no key has changed. Certificates were read again."
                : "The configuration was reloaded: \(changed.joined(separator: ", ")).")
        let later = changed.filter { SettingKey(named: $0)?.isFixed == true && after[$0] != atStart[$0] }
        if !later.isEmpty {
            logger.tell(.needsRestart, "Takes effect at the next start only: \(later.joined(separator: ", ")).")
        }
    }
}

extension Settings {
    /// The names of the settings that have changed, and of the tables that describe exchanges or reference rates.
    func changes(from old: Settings) -> [String] {
        let (before, after) = (old.values, values)
        let names = names + old.names.filter { after[$0] == nil }
        let tables = Set(descriptions.keys).union(old.descriptions.keys).sorted()
        return names.filter { before[$0] != after[$0] } + tables.filter { descriptions[$0] != old.descriptions[$0] }
    }
}

/// Reloads at each SIGHUP, and notifies systemd before and after.
struct ReloadService: Service {
    let signals: UnixSignalsSequence
    let manager: ServiceManager
    let reloading: Reloading
    let counts: Replaceable<StatusMessage.Reloads>
    let status: @Sendable () async -> String

    /// Whether SIGHUP means reload. If the process has a terminal, SIGHUP means that the terminal has closed, and the daemon ends.
    static var isWanted: Bool {
        let terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0 else { return true }
        close(terminal)
        return false
    }

    func run() async throws {
        for await _ in signals {
            counts.value.begun += 1
            manager.reloading()
            counts.value.failure = await reloading.reload()
            counts.value.done += 1
            manager.ready(status: await status())
        }
    }
}
