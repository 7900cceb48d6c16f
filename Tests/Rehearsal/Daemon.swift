import BTCPriceCore
import BTCPriceDaemon
import Logging
import Synchronization
import TestSupport

/// The results of a virtual daemon, over its restarts.
struct Tally {
    var ticks = 0
    var fresh = 0
    var stale = 0
    /// The stale ticks in which a source was available and would have responded.
    var avoidable = 0
    var skipped: Int64 = 0
    var latest = Duration.zero
    var clientAnswers = 0
    var lines: [String] = []
}

/// A currency that a virtual daemon keeps.
struct VirtualCurrency {
    var currency = Currency.usd
    var interval = Duration.seconds(1)
    /// The loaders in the order of their requests.
    let loaders: [any PriceLoader]
    var rules = SelectionRules()
    var derivation = DerivationPolicy.never
}

/// The shipped core in virtual time: tickers, fallback, health, observer, state machine and reports. Only clock, loaders and store
/// differ.
final class VirtualDaemon: Sendable {
    private let engine: PriceEngine
    private let ticker: OneSecondTicker
    private let observing: Task<Void, Never>
    private let streaming: Task<Void, Never>

    /// The wall clock at the start.
    static let wallStart: Int64 = 1_724_596_200_000

    static func time(of clock: VirtualClock) -> TimeSource {
        {
            let milliseconds = clock.offset.wholeMilliseconds
            return ObservationTime(
                wall: Timestamp(milliseconds: wallStart + milliseconds), boottime: .boot + 5_000_000 + milliseconds)
        }
    }

    /// Starts with the content of the store.
    /// - Parameters:
    ///   - history: Receives the states.
    ///   - isStreamed: Whether a client watches changes: the venues then have streams, which bring three prices a second.
    ///   - observes: The time from one request of the observer to the next, at least.
    ///   - rates: The reference rates that it has received.
    ///   - watch: Receives the states that watchers receive.
    init(
        _ currencies: [VirtualCurrency], clock: VirtualClock, store: MemoryStore,
        jitter: @escaping @Sendable () -> Double = { 0.5 }, tally: Shared<Tally>, history: PriceHistory? = nil,
        isStreamed: Bool = false,
        observes: Duration = .seconds(3), rates: [ReferenceRateTable] = [],
        watch: @escaping @Sendable (PriceState) -> Void = { _ in }
    ) async {
        let now = Self.time(of: clock)
        var logger = Logger(label: "virtual") { _ in LineKeeper { line in tally.update { $0.lines.append(line) } } }
        logger.logLevel = .info
        let reporter = Reporter(logger: logger, now: now)
        let streams = Dictionary(
            uniqueKeysWithValues: (isStreamed ? currencies.flatMap(\.loaders) : []).compactMap { loader in
                (loader as? ScriptedVenue).map { ($0.market, VirtualStream($0)) }
            })
        let plans = currencies.map { kept in
            let sources = kept.loaders.map { loader in
                FetchLatestPrice(
                    loader: loader, stream: streams[loader.market], address: "virtual", timeout: .milliseconds(800),
                    hedge: .milliseconds(400))
            }
            return CurrencyPlan(
                kept.currency, sources, interval: kept.interval, rules: kept.rules, derivation: kept.derivation)
        }
        let watcher = Watcher(seesChanges: isStreamed) { state in
            watch(state)
            let loaders = currencies.first { $0.currency.rawValue == state.currency }?.loaders ?? []
            let isAvoidable = loaders.contains { loader in
                (loader as? VirtualExchange)?.isWell == true && loader.venue.cacheTime <= .seconds(1)
            }
            tally.update { tally in
                if state.freshness == .fresh {
                    tally.fresh += 1
                } else {
                    tally.stale += 1
                    if isAvoidable { tally.avoidable += 1 }
                }
            }
        }
        engine = PriceEngine(
            plans, clock: clock, budget: .seconds(1), observes: observes, now: now, jitter: jitter,
            subscribers: [PersistLastValidPrice(store: store, report: { reporter.report($0) }), watcher],
            history: history,
            report: { event in
                reporter.report(event)
                guard case .ticked(_, let lateness, let skipped) = event else { return }
                tally.update { tally in
                    tally.ticks += 1
                    tally.skipped += skipped
                    tally.latest = max(tally.latest, lateness)
                }
            })
        ticker = OneSecondTicker(currencies.map { .init($0.currency, $0.interval) }, clock: clock, target: engine)
        let stored = store.load()
        await engine.resume(stored.cooldowns)
        for price in stored.prices { await engine.restore(price) }
        _ = await engine.take(rates)
        observing = Task { [engine] in
            await Observer.run(BackgroundWork(clock: clock), interval: { observes }, jitter: jitter) {
                await engine.observe()
            }
        }
        if isStreamed {
            await engine.startFeeds()
            await engine.publish(
                WatchedChanges(
                    interval: .milliseconds(100), currencies: Set(currencies.map(\.currency.rawValue))))
        }
        streaming = Task {
            guard isStreamed else { return }
            while true {
                let next = clock.now.advanced(by: .milliseconds(330))
                do { try await clock.sleep(until: next) } catch { return }
                for stream in streams.values { stream.tell() }
            }
        }
        await ticker.start()
    }

    /// The record of the ticks.
    var record: TickRecord { get async { await engine.firstRecord } }

    func stop() async {
        await ticker.stop()
        observing.cancel()
        streaming.cancel()
        await observing.value
        await streaming.value
    }

    /// Requests the newest price, as a client does.
    func refresh() async -> Bool {
        do throws(FetchFailure) {
            return try await engine.price(.noCache).quote != nil
        } catch {
            return false
        }
    }
}

/// Passes on the states that watchers receive.
private struct Watcher: StateSubscriber {
    let seesChanges: Bool
    let watch: @Sendable (PriceState) -> Void

    func receive(_ state: PriceState, _ publication: Publication, isFirst: Bool, kept: KeptState?) {
        if publication.isForAllWatchers || seesChanges { watch(state) }
    }
}

/// A value shared by several tasks.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: sending Value) { self.value = Mutex(value) }
    var current: Value { value.withLock { $0 } }
    func update(_ change: (inout sending Value) -> Void) { value.withLock { change(&$0) } }
}

/// Keeps the lines of a log.
private struct LineKeeper: LogHandler {
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    let keep: @Sendable (String) -> Void

    init(_ keep: @escaping @Sendable (String) -> Void) { self.keep = keep }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { keep("\(event.level): \(event.message)") }
}
