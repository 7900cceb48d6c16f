import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Logging

/// The parts of the daemon that settings change.
///
/// The start makes them and then calls ``apply(_:_:)``, as each reload does: a setting that is missing there has no effect at all. An
/// initializer takes only what its part can't be without until then.
struct Parts: Sendable {
    let running: Replaceable<RunningSettings>
    let client: ExchangeClient
    let engine: PriceEngine
    let ticker: OneSecondTicker
    /// `nil` if no history is kept.
    let history: HistoryStore?
    let episodes: EpisodeRecorder?
    let backfill: Backfill?
    let streams: StreamControl
    let rates: RateKeeper
    /// `nil` if no history is kept.
    let rateHistory: RateHistoryKeeper?
    let control: TickControl
    let server: PriceServer
    let level: Replaceable<Logger.Level>
    let now: TimeSource
    let logger: Logger

    /// Gives the sources to the parts that request them, and the settings to those that look when they need one.
    func use(_ settings: Settings, _ sources: ConfiguredSources) async {
        await engine.apply(sources.plans, budget: settings.budget, observes: settings.observeInterval)
        // Before the ticker: the watchdog must allow the longer silence.
        running.value = RunningSettings(settings: settings, sources: sources)
        await backfill?.change(sources.backfill(settings))
    }

    /// Applies the settings to all parts. The client has its own already: they may be invalid.
    func apply(_ settings: Settings, _ sources: ConfiguredSources, isStart: Bool) async {
        await use(settings, sources)
        sources.describe(await engine.registry, isStart: isStart, at: now().boottime, logger: logger)
        server.change(settings.currencies.map(\.currency))
        server.change(settings.limits)
        await ticker.change(settings.intervals)
        await streams.change(settings.changeInterval)
        await rates.change(sources.rates)
        await rateHistory?.change(settings.fillsHistory ? sources.rateHistory : nil)
        await control.change(idleAfter: settings.pauseWhenIdle)
        if let kept = settings.history { history?.change(kept) }
        level.value = settings.logLevel
    }
}
