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
        case .history(let call): call.method
        }
    }

    /// Whether the call changes the daemon, which only administrators may do.
    package var changesTheDaemon: Bool {
        switch self {
        case .pause, .resume, .retry: true
        case .getPrice, .watchPrice, .listCurrencies, .getStatus, .listSources, .getMetrics, .history: false
        }
    }

    /// The first named currency that is not among the known ones. `nil` for the history, which may have other currencies.
    package func unknown(among known: @autoclosure () -> [String]) -> String? {
        switch self {
        case .getPrice(_, nil, _), .listSources(nil), .watchPrice(nil, _, _), .listCurrencies, .getStatus, .getMetrics,
            .pause, .resume, .retry, .history:
            nil
        case .getPrice(_, let currency?, _), .listSources(let currency?): known().contains(currency) ? nil : currency
        case .watchPrice(let currencies?, _, _): currencies.first { !known().contains($0) }
        }
    }

    /// Reads a call to the interface.
    /// - Returns: The call, or the error to reply with; `nil` if the interface has no such method.
    package static func read(_ call: Call) -> Result<PriceCall, Refusal>? {
        let read = readMethod(call)
        return call.upgrade && read != nil ? .failure(Refusal(.methodNotImplemented(call.method))) : read
    }

    private static func readMethod(_ call: Call) -> Result<PriceCall, Refusal>? {
        switch call.method {
        case PriceInterface.getPrice:
            var (policy, currency, maxAge) = (CachePolicy.localFirst, String?.none, Int64?.none)
            for (name, value) in call.parameters.members {
                if name.isString("maxAgeMs"), value.isNull || value.maxAgeValue != nil {
                    maxAge = value.maxAgeValue
                    continue
                }
                guard value.isNull || value.rawString != nil, name.isString("cachePolicy") || name.isString("currency")
                else { return .failure(Refusal(.invalidParameter(name))) }
                guard let text = value.stringValue else { continue }
                if name.isString("currency") {
                    currency = text
                } else if let named = CachePolicy(rawValue: text) {
                    policy = named
                } else {
                    return .failure(Refusal(.invalidParameter(name)))
                }
            }
            return .success(.getPrice(policy, currency, maxAge: maxAge))
        case PriceInterface.watchPrice:
            guard call.more else { return .failure(Refusal(.expectedMore)) }
            var (currencies, updates, maxAge) = ([String]?.none, WatchUpdates.ticks, Int64?.none)
            for (name, value) in call.parameters.members {
                guard name.isString("currencies") || name.isString("updates") || name.isString("maxAgeMs") else {
                    return .failure(Refusal(.invalidParameter(name)))
                }
                if value.isNull { continue }
                if name.isString("maxAgeMs") {
                    guard let named = value.maxAgeValue else { return .failure(Refusal(.invalidParameter(name))) }
                    maxAge = named
                    continue
                }
                if name.isString("updates") {
                    guard let named = value.stringValue.flatMap(WatchUpdates.init) else {
                        return .failure(Refusal(.invalidParameter(name)))
                    }
                    updates = named
                    continue
                }
                let names = value.arrayValue?.map(\.stringValue) ?? [nil]
                guard !names.isEmpty, !names.contains(nil) else { return .failure(Refusal(.invalidParameter(name))) }
                currencies = names.compactMap(\.self).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
            }
            return .success(.watchPrice(currencies, updates, maxAge: maxAge))
        case PriceInterface.listCurrencies: return bare(.listCurrencies, call)
        case PriceInterface.getStatus: return bare(.getStatus, call)
        case PriceInterface.listSources: return text("currency", call) { .listSources($0) }
        case PriceInterface.getMetrics: return bare(.getMetrics, call)
        case PriceInterface.pause: return bare(.pause, call)
        case PriceInterface.resume: return bare(.resume, call)
        case PriceInterface.retry: return text("source", call) { .retry($0) }
        default: return HistoryCall.read(call)?.map(PriceCall.history)
        }
    }

    /// Accepts a call without parameters.
    private static func bare(_ read: PriceCall, _ call: Call) -> Result<PriceCall, Refusal> {
        for (name, _) in call.parameters.members { return .failure(Refusal(.invalidParameter(name))) }
        return .success(read)
    }

    /// Accepts a call with one text, which may be null.
    private static func text(
        _ parameter: StaticString, _ call: Call, _ read: (String?) -> PriceCall
    ) -> Result<PriceCall, Refusal> {
        var text: String?
        for (name, value) in call.parameters.members {
            guard name.isString(parameter), value.isNull || value.rawString != nil else {
                return .failure(Refusal(.invalidParameter(name)))
            }
            text = value.stringValue
        }
        return .success(read(text))
    }

    package var call: Call {
        switch self {
        case .getPrice(let policy, let currency, let maxAge):
            Call(
                method: PriceInterface.getPrice,
                parameters: Self.parameters(
                    [("cachePolicy", policy == .localFirst ? nil : policy.rawValue), ("currency", currency)],
                    maxAge: maxAge))
        case .watchPrice(let currencies, let updates, let maxAge):
            Call(
                method: PriceInterface.watchPrice,
                parameters: Self.watchParameters(currencies, updates, maxAge: maxAge), more: true)
        case .listCurrencies: Call(method: PriceInterface.listCurrencies)
        case .getStatus: Call(method: PriceInterface.getStatus)
        case .listSources(let currency):
            Call(method: PriceInterface.listSources, parameters: Self.parameters([("currency", currency)]))
        case .getMetrics: Call(method: PriceInterface.getMetrics)
        case .pause: Call(method: PriceInterface.pause)
        case .resume: Call(method: PriceInterface.resume)
        case .retry(let source):
            Call(method: PriceInterface.retry, parameters: Self.parameters([("source", source)]))
        case .history(let call): call.call
        }
    }

    private static func watchParameters(
        _ currencies: [String]?, _ updates: WatchUpdates, maxAge: Int64?
    ) -> JSONObject {
        var parameters = parameters([("updates", updates == .ticks ? nil : updates.rawValue)], maxAge: maxAge)
        parameters["currencies"] = currencies.map { .array($0.map { .string($0) }) }
        return parameters
    }

    /// Those parameters that have a value.
    private static func parameters(_ values: [(name: String, value: String?)], maxAge: Int64? = nil) -> JSONObject {
        var parameters = JSONObject()
        for (name, value) in values { parameters[name] = value.map { .string($0) } }
        parameters["maxAgeMs"] = maxAge.map { .integer($0) }
        return parameters
    }

    /// A call that fails with an error reply.
    package struct Refusal: Error, Sendable, Hashable {
        package let reply: Reply

        init(_ reply: Reply) {
            self.reply = reply
        }
    }
}

extension JSONValue {
    /// The value as `maxAgeMs`; `nil` if it is out of range.
    fileprivate var maxAgeValue: Int64? { millisecondsValue.flatMap { $0 >= 0 ? $0 : nil } }
}

extension Reply {
    package static func state(_ message: StateMessage, continues: Bool = false) -> Reply {
        Reply(parameters: ["state": .object(message.json)], continues: continues)
    }

    /// - Parameter boottime: `CLOCK_BOOTTIME` of the reply, milliseconds.
    package static func tooOld(_ state: PriceState, at boottime: Int64) -> Reply {
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
            parameters: ["currency": .string(currency), "known": .array(known.map { .string($0) })],
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

    package static func unknownSource(_ source: String, known: [String]) -> Reply {
        Reply(
            parameters: ["source": .string(source), "known": .array(known.map { .string($0) })],
            error: PriceInterface.unknownSource)
    }

    package static func busy(limit: Int) -> Reply {
        Reply(parameters: ["limit": .integer(Int64(limit))], error: PriceInterface.busy)
    }

    package static func fetchFailed(_ failure: FetchFailure) -> Reply {
        Reply(parameters: ["reason": .string(failure.description)], error: PriceInterface.fetchFailed)
    }
}
