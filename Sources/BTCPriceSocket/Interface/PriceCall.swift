package import BTCPriceCore

/// A call to the daemon, read and checked: to `io.btcpriced.Price`, or to another of its interfaces.
package enum PriceCall: Sendable, Hashable {
    /// `GetPrice`: in this currency; `nil` for the first one. A price older than `maxAge`, milliseconds, is an error.
    case getPrice(CachePolicy, String? = nil, maxAge: Int64? = nil)
    /// `WatchPrice`: these currencies; `nil` for the first one. A price older than `maxAge`, milliseconds, is an error.
    case watchPrice([String]? = nil, WatchUpdates = .ticks, maxAge: Int64? = nil)
    case listCurrencies
    case getStatus
    /// `ListSources`: of this currency; `nil` for the first one.
    case listSources(String? = nil)
    case getMetrics
    case pause
    case resume
    case retry(String?)
    case setSource(String, isOn: Bool)
    case history(HistoryCall)

    package var method: PriceMethod {
        switch self {
        case .getPrice: .getPrice
        case .watchPrice: .watchPrice
        case .listCurrencies: .listCurrencies
        case .getStatus: .getStatus
        case .listSources: .listSources
        case .getMetrics: .getMetrics
        case .pause: .pause
        case .resume: .resume
        case .retry: .retry
        case .setSource: .setSource
        case .history(.getHistory): .getHistory
        case .history(.getPriceAt): .getPriceAt
        case .history(.getPricesAt): .getPricesAt
        case .history(.getDay): .getDay
        case .history(.getEvents): .getEvents
        }
    }

    /// Whether the call changes the daemon, which only administrators may do.
    package var changesTheDaemon: Bool {
        switch self {
        case .pause, .resume, .retry, .setSource: true
        case .getPrice, .watchPrice, .listCurrencies, .getStatus, .listSources, .getMetrics, .history: false
        }
    }

    /// The work of handling the call outside the loop, in units of about 0.1 ms.
    package var cost: Int64 {
        switch self {
        case .getMetrics: 6
        case .history(.getHistory(let query)): 1 + Int64(min(query.limit ?? .max, HistoryQuery.batch)) / 25
        case .history(.getPricesAt(let times, _, _)): 1 + Int64(times.count)
        case .history(.getEvents): 4
        case .getPrice, .watchPrice, .listCurrencies, .getStatus, .listSources, .pause, .resume, .retry, .setSource,
            .history:
            1
        }
    }

    /// The first named currency that is not among the known ones. `nil` for the history, which may have other currencies.
    package func unknown(among known: @autoclosure () -> [String]) -> String? {
        switch self {
        case .getPrice(_, nil, _), .listSources(nil), .watchPrice(nil, _, _), .listCurrencies, .getStatus, .getMetrics,
            .pause, .resume, .retry, .setSource, .history:
            nil
        case .getPrice(_, let currency?, _), .listSources(let currency?): known().contains(currency) ? nil : currency
        case .watchPrice(let currencies?, _, _): currencies.first { !known().contains($0) }
        }
    }

    /// Reads a call to one of the interfaces.
    /// - Returns: The call, or the error to reply with; `nil` if they have no such method.
    package static func read(_ call: Call) -> Result<PriceCall, Refusal>? {
        var (parameters, wrong) = (CallParameters(), JSONFieldError?.none)
        if !call.parameters.members.isEmpty {
            do throws(JSONFieldError) { parameters = try CallParameters(call) } catch { wrong = error }
        }
        do throws(JSONFieldError) {
            guard let read = try PriceCall(call, parameters) else { return nil }
            if call.upgrade { return .failure(Refusal(reply: .methodNotImplemented(call.method))) }
            if case .watchPrice = read, !call.more { return .failure(Refusal(reply: .expectedMore)) }
            if let wrong { throw wrong }
            return .success(read)
        } catch {
            return .failure(Refusal(reply: .invalidParameter(JSONValue(.string((wrong ?? error).field)))))
        }
    }

    /// - Returns: `nil` if there is no such method.
    private init?(_ call: Call, _ parameters: CallParameters) throws(JSONFieldError) {
        let currency = parameters.currency
        switch call.method {
        case PriceInterface.getPrice:
            self = .getPrice(parameters.cachePolicy ?? .localFirst, currency, maxAge: parameters.maxAge)
        case PriceInterface.watchPrice:
            var named: Set<String> = []
            let currencies = parameters.currencies?.filter { named.insert($0).inserted }
            self = .watchPrice(currencies, parameters.updates ?? .ticks, maxAge: parameters.maxAge)
        case PriceInterface.listCurrencies: self = .listCurrencies
        case PriceInterface.getStatus: self = .getStatus
        case PriceInterface.listSources: self = .listSources(currency)
        case PriceInterface.getMetrics: self = .getMetrics
        case PriceInterface.pause: self = .pause
        case PriceInterface.resume: self = .resume
        case PriceInterface.retry: self = .retry(parameters.source)
        case PriceInterface.setSource:
            guard let source = parameters.source else { throw JSONFieldError(field: "source") }
            guard let isOn = parameters.enabled else { throw JSONFieldError(field: "enabled") }
            self = .setSource(source, isOn: isOn)
        case HistoryInterface.getHistory:
            self = .history(
                .getHistory(
                    HistoryQuery(
                        currency: currency, from: parameters.from, to: parameters.to,
                        step: parameters.step ?? .minute, limit: parameters.limit.map { Int(clamping: $0) },
                        more: call.more)))
        case HistoryInterface.getPriceAt:
            guard let time = parameters.time else { throw JSONFieldError(field: "time") }
            self = .history(.getPriceAt(time, currency, fetch: parameters.fetch ?? false))
        case HistoryInterface.getPricesAt:
            guard let times = parameters.times else { throw JSONFieldError(field: "times") }
            self = .history(.getPricesAt(times, currency, fetch: parameters.fetch ?? false))
        case HistoryInterface.getDay: self = .history(.getDay(currency))
        case HistoryInterface.getEvents:
            self = .history(
                .getEvents(
                    EventQuery(
                        currency: currency, from: parameters.from, to: parameters.to, after: parameters.after)))
        default: return nil
        }
    }

    package var call: Call {
        var (parameters, more) = (CallParameters(), false)
        let method: String
        switch self {
        case .getPrice(let policy, let currency, let maxAge):
            method = PriceInterface.getPrice
            parameters.cachePolicy = policy == .localFirst ? nil : policy
            (parameters.currency, parameters.maxAge) = (currency, maxAge)
        case .watchPrice(let currencies, let updates, let maxAge):
            method = PriceInterface.watchPrice
            parameters.updates = updates == .ticks ? nil : updates
            (parameters.currencies, parameters.maxAge, more) = (currencies, maxAge, true)
        case .listCurrencies: method = PriceInterface.listCurrencies
        case .getStatus: method = PriceInterface.getStatus
        case .listSources(let currency):
            method = PriceInterface.listSources
            parameters.currency = currency
        case .getMetrics: method = PriceInterface.getMetrics
        case .pause: method = PriceInterface.pause
        case .resume: method = PriceInterface.resume
        case .retry(let source):
            method = PriceInterface.retry
            parameters.source = source
        case .setSource(let source, let isOn):
            method = PriceInterface.setSource
            (parameters.source, parameters.enabled) = (source, isOn)
        case .history(.getHistory(let query)):
            method = HistoryInterface.getHistory
            (parameters.step, parameters.currency, parameters.from) = (query.step, query.currency, query.from)
            (parameters.to, parameters.limit, more) = (query.to, query.limit.map(Int64.init), query.more)
        case .history(.getPriceAt(let time, let currency, let fetch)):
            method = HistoryInterface.getPriceAt
            // Omitted if false, because an older daemon does not know it.
            (parameters.time, parameters.currency, parameters.fetch) = (time, currency, fetch ? true : nil)
        case .history(.getPricesAt(let times, let currency, let fetch)):
            method = HistoryInterface.getPricesAt
            (parameters.times, parameters.currency, parameters.fetch) = (times, currency, fetch ? true : nil)
        case .history(.getDay(let currency)):
            method = HistoryInterface.getDay
            parameters.currency = currency
        case .history(.getEvents(let query)):
            method = HistoryInterface.getEvents
            (parameters.currency, parameters.from, parameters.to) = (query.currency, query.from, query.to)
            parameters.after = query.after
        }
        return Call(method: method, parameters: parameters.json(of: method), more: more)
    }

    /// A call that fails with an error reply.
    package struct Refusal: Error, Sendable, Hashable {
        package let reply: Reply
    }
}

extension Reply {
    package static func state(_ message: StateMessage, continues: Bool = false) -> Reply {
        Reply(
            parameters: JSONValue { parameters in
                parameters.object {
                    $0.name("state")
                    message.write(to: &$0)
                }
            }, continues: continues)
    }

    package static func tooOld(_ state: PriceState, at boottime: BootTime) -> Reply {
        Reply(
            parameters: [
                "ageMs": .optional(state.observedBoottime.map { max(0, boottime - $0) }),
                "reason": .optional(state.failure),
            ], error: PriceInterface.tooOld)
    }

    package static func status(_ message: StatusMessage) -> Reply {
        Reply(parameters: ["status": .object(message.json)])
    }

    package static func sources(_ reports: [SourceReport]) -> Reply {
        Reply(parameters: ["sources": .array(reports.map { .object($0.json) })])
    }

    package static func currencies(_ currencies: [CurrencyMessage]) -> Reply {
        Reply(parameters: ["currencies": .array(currencies.map { .object($0.json) })])
    }

    package static func metrics(_ families: [MetricFamily]) -> Reply {
        Reply(parameters: ["families": .array(families.map { .object($0.json) })])
    }

    package static func unknownCurrency(_ currency: String, known: [String]) -> Reply {
        Reply(
            parameters: ["currency": .string(currency.shortened), "known": .array(known.map { .string($0) })],
            error: PriceInterface.unknownCurrency)
    }

    package static func retried(_ retried: [String], kept: [Skipped], now: ObservationTime) -> Reply {
        let kept = kept.compactMap { kept -> RetryMessage.Kept? in
            guard case .cooldown(let cooldown) = kept.reason else { return nil }
            return RetryMessage.Kept(
                source: kept.source, until: now.wallTime(of: cooldown.until.boottime),
                reason: cooldown.reason.description)
        }
        return Reply(parameters: RetryMessage(retried: retried, kept: kept).json)
    }

    /// - Parameter withoutSource: ISO 4217; the currencies whose sources are all switched off.
    package static func sourceSet(withoutSource: [String]) -> Reply {
        Reply(parameters: SetSourceMessage(withoutSource: withoutSource).json)
    }

    package static func unknownSource(_ source: String, known: [String]) -> Reply {
        Reply(
            parameters: ["source": .string(source.shortened), "known": .array(known.map { .string($0) })],
            error: PriceInterface.unknownSource)
    }

    package static func tooManyConnections(_ limit: ClientLimit, most: Int64) -> Reply {
        Reply(
            parameters: ["limit": .string(limit.rawValue), "most": .integer(most)],
            error: PriceInterface.tooManyConnections)
    }

    package static func busy(limit: Int) -> Reply {
        Reply(parameters: ["limit": .integer(Int64(limit))], error: PriceInterface.busy)
    }

    package static func fetchFailed(_ failure: FetchFailure) -> Reply {
        Reply(parameters: ["reason": .string(failure.description)], error: PriceInterface.fetchFailed)
    }
}
