import BTCPriceCore
import BTCPriceSocket
import Glibc
import Synchronization

/// The socket of a publisher: serves `io.btcpriced.Price` as the publisher's daemon does.
final class PublisherSocket: Sendable {
    private struct Known {
        var instance = ""
        /// By currency, in the order in which they first came, dollars first.
        var states: [(state: PriceState, interval: Int64)] = []
        var sources: [SourceReport] = []
        /// The number of messages since the start, by result.
        var counts: [String: Int64] = [:]
    }

    private let name: String
    private let path: String
    private let startedAt = ObservationTime.now()
    private let known = Mutex(Known())
    private let server = Mutex<PriceServer?>(nil)

    /// Listens at `<directory>/<name>`.
    /// - Parameter limits: The share of this socket in what the process has.
    /// - Throws: ``SocketError``
    init(
        _ name: String, in directory: String, limits: ServerLimits, report: @escaping @Sendable (ServerEvent) -> Void
    ) throws(SocketError) {
        self.name = name
        path = "\(directory)/\(name)"
        // `self` can be captured only after all properties are set, so the server is stored afterwards.
        let server = try PriceServer(
            listener: try ListeningSocket(path: path), instance: "", limits: limits, now: { .now() },
            activity: ClientActivity(at: startedAt.boottime),
            answer: { [weak self] call, _, clients in
                CallAnswer(self?.reply(to: call, clients) ?? .methodNotImplemented(call.call.method))
            },
            report: report)
        self.server.withLock { $0 = server }
        tell(StateMessage(instance: "", state: .empty()), interval: 1000)
        try server.start()
    }

    func tell(_ message: StateMessage, interval: Int64) {
        known.withLock { known in
            known.instance = message.instance
            let index = known.states.firstIndex { $0.state.currency == message.state.currency }
            if let index {
                known.states[index] = (message.state, interval)
            } else {
                known.states.append((message.state, interval))
            }
        }
        server.withLock { server in
            server?.change(instance: message.instance)
            server?.receive(message.state, .tick, isFirst: false, kept: nil)
        }
    }

    func drop(_ currency: String) {
        let kept = known.withLock { known in
            known.states.removeAll { $0.state.currency == currency }
            return known.states.compactMap { Currency(rawValue: $0.state.currency) }
        }
        server.withLock { $0?.change(kept) }
    }

    func tell(_ sources: [SourceReport]) { known.withLock { $0.sources = sources } }

    func count(_ kind: String) { known.withLock { $0.counts[kind, default: 0] += 1 } }

    func stop() { server.withLock { $0.take() }?.stop() }

    // MARK: - Calls

    private func reply(to call: PriceCall, _ clients: ClientCounts) -> Reply {
        let now = ObservationTime.now()
        let known = known.withLock(\.self)
        func message(_ state: PriceState) -> StateMessage {
            StateMessage(instance: known.instance, state: state.aged(at: now.boottime), boottime: now.boottime)
        }
        switch call {
        case .getPrice(let policy, let currency, let maxAge):
            let held = known.states.first { currency == nil || $0.state.currency == currency }?.state
            // A follower can't request a newer price.
            guard let held, policy != .noCache else {
                let reason = held?.failure ?? "a follower requests nothing"
                return .fetchFailed(FetchFailure(failures: [SourceFailure(source: name, error: .unavailable(reason))]))
            }
            if let maxAge, !held.isWithin(maxAge, at: now.boottime) { return .tooOld(held, at: now.boottime) }
            return .state(message(held))
        case .listCurrencies:
            return .currencies(
                known.states.map {
                    CurrencyMessage(
                        currency: $0.state.currency, price: message($0.state), interval: $0.interval, sources: [name])
                })
        case .listSources(let currency):
            // A publisher sends those of its first currency.
            let reports = known.sources.compactMap { report -> SourceReport? in
                let theirs = Market(report.name, report.market).currency?.rawValue
                guard currency == nil || theirs == currency else { return nil }
                var report = report
                let state = known.states.first { $0.state.currency == theirs }?.state
                if state?.aged(at: now.boottime).freshness != .fresh { report.becomeUnused() }
                return report
            }
            return .sources(reports)
        case .getStatus: return .status(status(known, message(known.states[0].state), clients, at: now))
        case .getMetrics: return .metrics(metrics(known))
        case .history: return .historyDisabled
        // Only the daemon has these methods. The server's loop handles a watch.
        case .pause, .resume, .retry, .setSource, .watchPrice: return .methodNotImplemented(call.call.method)
        }
    }

    private func status(
        _ known: Known, _ price: StateMessage, _ clients: ClientCounts, at now: ObservationTime
    ) -> StatusMessage {
        StatusMessage(
            version: Product.version, pid: Int64(getpid()), uptime: now.boottime - startedAt.boottime, price: price,
            since: startedAt.wall, ticking: .running,
            ticks: StatusMessage.Ticks(
                interval: known.states[0].interval, done: known.counts["ok"] ?? 0,
                failed: known.counts.filter { $0.key != "ok" }.values.reduce(0, +), skipped: 0),
            store: StatusMessage.Store(runtimeDirectory: "", stateDirectory: "", synced: nil, failure: nil),
            clients: StatusMessage.Clients(
                connections: Int64(clients.connections), users: Int64(clients.users),
                watchers: Int64(clients.watchers), calls: clients.calls, limits: []),
            elsewhere: known.sources.filter(\.isElsewhere).map(\.name))
    }

    private func metrics(_ known: Known) -> [MetricFamily] {
        [
            MetricFamily(
                "btcpriced_fleet_messages", .counter, "Quotes of the publisher, by result.",
                samples: known.counts.sorted { $0.key < $1.key }.map { kind, count in
                    .init(
                        suffix: "_total", labels: [.init("publisher", name), .init("result", kind)], value: "\(count)")
                })
        ]
    }
}
