import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import Glibc
import Logging

/// Handles the calls that need more than the held price.
struct CallHandler: Sendable {
    let instance: String
    let startedAt: ObservationTime
    let running: Replaceable<RunningSettings>
    /// Fixed at the start: a reload does not change them.
    let directories: Directories
    let engine: PriceEngine
    let control: TickControl
    let store: FilePriceStore
    let persist: PersistLastValidPrice
    /// `nil` if no history is kept.
    let history: HistoryCalls?
    let backfill: Backfill?
    /// `nil` if SIGHUP ends the daemon.
    let reloads: Replaceable<StatusMessage.Reloads>?
    /// Switches a source off or on; `nil` if there is none of this name.
    let turn: @Sendable (_ source: String, _ on: Bool) async -> Reloading.Turned?
    let now: TimeSource
    let logger: Logger
    private let sharedMetrics = SharedAnswer()

    func answer(to call: PriceCall, of uid: UInt32, _ clients: ClientCounts) async -> CallAnswer {
        if case .getMetrics = call {
            return await sharedMetrics.answer { CallAnswer(.metrics(await metrics(clients))) }
        }
        guard case .history(let call) = call else { return CallAnswer(await reply(to: call, of: uid, clients)) }
        guard let history else { return CallAnswer(.historyDisabled) }
        return await history.answer(to: call, of: uid, kept: running.value.settings.currencies.map(\.currency))
    }

    private func reply(to call: PriceCall, of uid: UInt32, _ clients: ClientCounts) async -> Reply {
        switch call {
        case .getPrice(let policy, let currency, let maxAge): return await price(policy, currency, maxAge: maxAge)
        case .getStatus: return .status(await status(clients))
        case .listSources(let currency): return .sources(await reports(currency))
        case .listCurrencies: return .currencies(await currencies())
        case .pause:
            if await control.pause() {
                logger.tell(
                    .paused, "Paused by \(Self.name(uid)): the ticks are stopped until 'btcctl resume'.",
                    ["uid": "\(uid)"])
            }
            return Reply()
        case .resume:
            if await control.resume() { logger.tell(.resumed, "Resumed by \(Self.name(uid)).", ["uid": "\(uid)"]) }
            return Reply()
        case .retry(let source):
            guard let (retried, kept) = await engine.retry(source) else {
                return .unknownSource(source ?? "", known: await requested())
            }
            await backfill?.retry()
            if !retried.isEmpty {
                logger.tell(
                    .retried, "Cooldowns cleared by \(Self.name(uid)): \(retried.joined(separator: ", ")).",
                    ["uid": "\(uid)"])
            }
            return .retried(retried, kept: kept, now: now())
        case .setSource(let source, let isOn):
            guard let turned = await turn(source, isOn) else {
                return .unknownSource(source, known: running.value.settings.sources.map(\.name))
            }
            let without = turned.withoutSource.map(\.rawValue)
            if turned.isChange {
                let note = without.isEmpty ? "" : " No source is left for \(without.joined(separator: ", "))."
                logger.tell(
                    isOn ? .sourceOn : .sourceOff,
                    "\(source) was switched \(isOn ? "on" : "off until it is switched on, or the next start,") by "
                        + "\(Self.name(uid)).\(note)", ["uid": "\(uid)", "source": "\(source)"])
            }
            return .sourceSet(withoutSource: without)
        // The socket's loop handles `watchPrice`, and ``answer(to:of:_:)`` handles the others.
        case .watchPrice, .getMetrics, .history: return .expectedMore
        }
    }

    private static func name(_ uid: UInt32) -> String { uid == 0 ? "root" : "user \(uid)" }

    private func price(_ policy: CachePolicy, _ currency: String?, maxAge: Int64?) async -> Reply {
        // The client needs a current price, and the price is current only while the ticks run.
        await control.clientCame()
        do throws(FetchFailure) {
            let named = currency.map(Currency.init(rawValue:))
            if let named, named == nil { throw .notKept }
            let state = try await engine.price(policy, in: named ?? nil, maxAge: maxAge)
            let boottime = now().boottime
            if let maxAge, !state.isWithin(maxAge, at: boottime) { return .tooOld(state, at: boottime) }
            return .state(StateMessage(instance: instance, state: state, boottime: boottime))
        } catch {
            guard error.isNotKept else { return .fetchFailed(error) }
            return .unknownCurrency(currency ?? "", known: await engine.currencies.map(\.rawValue))
        }
    }

    /// - Parameter currency: ISO 4217; `nil` for the first currency.
    private func reports(_ currency: String?) async -> [SourceReport] {
        guard let currency = await kept(currency), let record = await engine.record(of: currency) else { return [] }
        // While the price is not current, no source is in use.
        let isFresh = record.state.freshness == .fresh
        let verdicts = isFresh ? record.verdicts : [:]
        let present = now()
        var reports = await engine.registry.reports(
            of: await engine.markets(of: currency), at: present, verdicts)
        for report in running.value.sources.unused(currency) {
            reports.insert(report, at: min(Int(report.order) - 1, reports.count))
        }
        let elsewhere = Set(self.elsewhere)
        for index in reports.indices {
            reports[index].order = Int64(index + 1)
            let market = Market(reports[index].name, reports[index].market)
            reports[index].way = record.ways[market]
            // One that was switched off has no price since.
            if reports[index].lastSuccess != nil {
                if let last = record.lastPrices[reports[index].name] {
                    reports[index].lastPrice = last.value
                    // A request for another market of the exchange may have brought it.
                    reports[index].lastSuccess = present.wallTime(of: last.arrival.boottime)
                }
                (reports[index].bid, reports[index].ask) = (record.quotes[market]?.bid, record.quotes[market]?.ask)
            }
            reports[index].claim = isFresh ? record.claims[market] : nil
            reports[index].isElsewhere = elsewhere.contains(reports[index].name)
            reports[index].clockDifference = await engine.clockDifference(of: reports[index].name)
        }
        return reports
    }

    /// The sources whose prices are not from the exchanges' own addresses, as far as is known.
    private var elsewhere: [String] {
        let (settings, sources) = (running.value.settings, running.value.sources)
        return (settings.elsewhere + sources.peersElsewhere).filter { !sources.off.contains($0) }
    }

    /// The currency of a call: the named one, or the first one if the call names none. `nil` for an unknown code.
    private func kept(_ currency: String?) async -> Currency? {
        if let currency { return Currency(rawValue: currency) }
        return await engine.currencies.first
    }

    /// The names of the sources that are requested.
    private func requested() async -> [String] {
        let names = Set(await engine.registry.entries.map(\.source.name))
        return running.value.settings.sources.map(\.name).filter(names.contains)
    }

    private func currencies() async -> [CurrencyMessage] {
        var messages: [CurrencyMessage] = []
        for settings in running.value.settings.currencies {
            guard let state = await engine.state(of: settings.currency) else { continue }
            let boottime = now().boottime
            messages.append(
                CurrencyMessage(
                    currency: settings.currency.rawValue,
                    price: StateMessage(instance: instance, state: state.aged(at: boottime), boottime: boottime),
                    interval: settings.interval.wholeMilliseconds, sources: settings.sources.map(\.name)))
        }
        return messages
    }

    private func metrics(_ clients: ClientCounts) async -> [MetricFamily] {
        var currencies: [DaemonMetrics.OfCurrency] = []
        for settings in running.value.settings.currencies {
            guard let record = await engine.record(of: settings.currency) else { continue }
            currencies.append(
                DaemonMetrics.OfCurrency(
                    currency: settings.currency, interval: settings.interval, record: record,
                    sources: await reports(settings.currency.rawValue)))
        }
        return DaemonMetrics(
            now: now(), startedAt: startedAt, isTicking: await control.ticking == .running, currencies: currencies,
            registry: await engine.registry, clients: clients, lastSync: store.lastSync, writes: store.writes,
            heldCandles: history?.store.held, historyFails: history?.store.failure != nil,
            clock: await engine.clockComparison, process: .current()
        ).families
    }

    private func status(_ clients: ClientCounts) async -> StatusMessage {
        let record = await engine.firstRecord
        let ticking = await control.ticking
        let (present, settings) = (now(), running.value.settings)
        return StatusMessage(
            version: Product.version, pid: Int64(getpid()), uptime: present.boottime - startedAt.boottime,
            price: StateMessage(instance: instance, state: record.state, boottime: present.boottime),
            since: record.since, ticking: ticking,
            ticks: StatusMessage.Ticks(
                interval: running.value.settings.first.interval.wholeMilliseconds, done: record.state.ticks.number,
                failed: record.failed,
                skipped: record.skipped, validated: record.validated),
            pegRate: await engine.record(of: .usd)?.pegRate,
            store: StatusMessage.Store(
                runtimeDirectory: directories.runtime, stateDirectory: directories.state,
                synced: store.lastSync.map(present.wallTime), failure: persist.failure.map { "\($0)" },
                heldCandles: history.map { Int64($0.store.held) },
                historyFailure: history?.store.failure?.description, candleFailure: await backfill?.failure),
            clients: StatusMessage.Clients(clients), elsewhere: elsewhere,
            sourcesOff: settings.sources.map(\.name).filter(running.value.sources.off.contains),
            clock: StatusMessage.Clock(await engine.clockComparison), reloads: reloads?.value)
    }
}

extension StatusMessage.Clients {
    init(_ counts: ClientCounts) {
        self.init(
            connections: Int64(counts.connections), users: Int64(counts.users), watchers: Int64(counts.watchers),
            calls: counts.calls,
            limits: ClientLimit.allCases.map {
                Limit(name: $0.rawValue, most: counts.limits.most(of: $0), hits: counts.hits(of: $0))
            })
    }
}

/// An answer that is expensive to make: calls that come while it is made share it, and its memory.
actor SharedAnswer {
    private var underWay: Task<CallAnswer, Never>?

    /// - Parameter make: Makes the answer. Not called while an earlier call makes it.
    func answer(_ make: @escaping @Sendable () async -> CallAnswer) async -> CallAnswer {
        if let underWay { return await underWay.value }
        let task = Task { await make() }
        underWay = task
        defer { underWay = nil }
        return await task.value
    }
}
