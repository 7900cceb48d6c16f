import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// The gateway's JSON. It contains no error text of the daemon, no addresses and no file names.
enum PriceShapes {
    // MARK: - Ours

    /// A price with time, source and state; if it is not current, also its age and the reason. Without a price: currency, state, reason.
    static func price(_ state: PriceState, at now: ObservationTime) -> JSONObject {
        var object = head(state, reason(of: state), at: now)
        guard let quote = state.quote else { return object }
        object["price"] = .string(quote.value.description)
        object["time"] = .string(HTTPDate.rfc3339(quote.timestamp.milliseconds))
        object["source"] = .string(quote.source)
        object["market"] = .string(quote.market)
        if let derivation = state.derivation { object["derived"] = .object(derivation.json) }
        if let confirmation = state.confirmation { object["confirmation"] = .string(confirmation.rawValue) }
        if let uncertainty = state.standing.uncertainty {
            object["uncertainty"] = .object([
                "plusMinus": .string(uncertainty.plusMinus.description), "markets": .integer(uncertainty.markets),
            ])
        }
        if let warning = state.standing.warning { object["warning"] = .string(warning) }
        if let day = state.day { object["day"] = .object(Self.day(day)) }
        return object
    }

    /// What a price has without its value.
    /// - Parameter reason: Why it is not current, or not shown; `nil` if it is.
    private static func head(_ state: PriceState, _ reason: String?, at now: ObservationTime) -> JSONObject {
        var object: JSONObject = ["currency": .string(state.currency), "state": .string(state.freshness.rawValue)]
        if let reason {
            object["reason"] = .string(reason)
            object["ageMs"] = state.age(at: now).map { .integer($0.age.wholeMilliseconds) }
        }
        return object
    }

    /// Why a price is not current; `nil` if it is. It does not use the daemon's text, which may name addresses.
    static func reason(of state: PriceState) -> String? {
        state.freshness == .fresh ? nil : StaleReason.text(of: state.failure, ticking: state.ticks.ticking)
    }

    static func day(_ day: PriceDay) -> JSONObject {
        var object: JSONObject = [
            "since": .string(HTTPDate.rfc3339(day.since.milliseconds)), "open": .string(day.open.description),
            "high": .string(day.high.description), "low": .string(day.low.description),
            "change": .string(day.change.description), "changePercent": .string(day.changePercent.description),
            "backfilled": .bool(day.isBackfilled),
        ]
        object["until"] = day.until.map { .string(HTTPDate.rfc3339($0.milliseconds)) }
        object["coveredMinutes"] = day.coveredMinutes.map { .integer($0) }
        return object
    }

    /// An event. What it does not have is left out.
    static func event(_ event: EventMessage) -> JSONObject {
        var object: JSONObject = [
            "kind": .string(event.kind), "start": .string(HTTPDate.rfc3339(event.start.milliseconds)),
        ]
        object["end"] = event.end.map { .string(HTTPDate.rfc3339($0.milliseconds)) }
        object["currency"] = event.currency.map { .string($0) }
        object["source"] = event.source.map { .string($0) }
        object["worst"] = event.worst.map { .string($0.description) }
        object["differenceMs"] = event.difference.map { .integer($0) }
        object["count"] = .integer(event.count)
        object["text"] = .string(
            PriceTexts.event(
                event.kind, currency: event.currency, source: event.source, worst: event.worst,
                difference: event.difference, count: event.count))
        return object
    }

    /// A candle. What is not known of it is left out.
    static func candle(_ candle: Candle) -> JSONObject {
        var object: JSONObject = [
            "time": .string(HTTPDate.rfc3339(candle.start * 1000)), "open": .string(candle.open.description),
            "high": .string(candle.high.description), "low": .string(candle.low.description),
            "close": .string(candle.close.description), "ticks": .integer(candle.ticks),
            "fresh": .integer(candle.fresh), "origin": .string(candle.origin),
        ]
        object["coveredMinutes"] = candle.coveredMinutes.map { .integer($0) }
        object["doubtful"] = candle.doubtful.map { .integer($0) }
        object["coveredSeconds"] = candle.covered.map { .integer($0) }
        object["single"] = candle.single.map { .integer($0) }
        return object
    }

    /// Candles as comma-separated values (RFC 4180). A number that is not known is empty.
    static func csv(_ candles: [Candle], of currency: String) -> String {
        let number = { (number: Int64?) in number.map(String.init) ?? "" }
        let rows = candles.map { candle in
            "\(HTTPDate.rfc3339(candle.start * 1000)),\(candle.open),\(candle.high),\(candle.low),\(candle.close),"
                + "\(candle.ticks),\(candle.fresh),\(candle.origin),"
                + "\(number(candle.coveredMinutes)),\(number(candle.doubtful)),\(currency),BTC/\(currency),"
                + "\(number(candle.covered)),\(number(candle.single))\r\n"
        }
        return
            "time,open,high,low,close,ticks,fresh,origin,covered_minutes,doubtful,currency,pair,covered_seconds,single\r\n"
            + rows.joined()
    }

    /// A currency with its price; if that is too old, with its age and the reason.
    static func currency(_ message: CurrencyMessage, isCurrent: Bool, at now: ObservationTime) -> JSONObject {
        let state = message.price.state
        var object =
            isCurrent
            ? price(state, at: now)
            : head(state, reason(of: state) ?? "the price is older than max-age allows", at: now)
        object["intervalMs"] = .integer(message.interval)
        object["sources"] = .array(message.sources.map { .string($0) })
        return object
    }

    static func status(_ status: StatusMessage) -> JSONObject {
        var object: JSONObject = [
            "version": .string(status.version), "uptimeMs": .integer(status.uptime),
            "ticking": .string(status.ticking.rawValue), "currency": .string(status.price.state.currency),
            "state": .string(status.price.state.freshness.rawValue),
            "since": .string(HTTPDate.rfc3339(status.since.milliseconds)),
            "ticks": .object([
                "intervalMs": .integer(status.ticks.interval), "done": .integer(status.ticks.done),
                "failed": .integer(status.ticks.failed), "skipped": .integer(status.ticks.skipped),
                "confirmed": .integer(status.ticks.validated.confirmed),
                "unconfirmed": .integer(status.ticks.validated.unconfirmed),
                "withheld": .integer(status.ticks.validated.withheld),
            ]),
        ]
        if let rate = status.pegRate {
            object["tetherRate"] = .object(["value": .string(rate.value.description), "offPeg": .bool(rate.isOffPeg)])
        }
        object["elsewhere"] = .array(status.elsewhere.map { .string($0) })
        return object
    }

    static func source(_ report: SourceReport) -> JSONObject {
        var object: JSONObject = [
            "name": .string(report.name), "order": .integer(report.order), "market": .string(report.market),
            "use": .string(report.use.rawValue), "requests": .integer(report.requests),
            "elsewhere": .bool(report.isElsewhere),
        ]
        if let verdict = report.verdict { object["verdict"] = .string(verdict.rawValue) }
        if let claim = report.claim {
            object["low"] = .string(claim.low.description)
            object["high"] = .string(claim.high.description)
            object["inVote"] = .bool(claim.isMember)
            object["contradictedBy"] = .array(claim.contradictedBy.map { .string($0) })
        }
        if report.isOff { object["switchedOff"] = .bool(true) }
        if let bid = report.bid { object["bid"] = .string(bid.description) }
        if let ask = report.ask { object["ask"] = .string(ask.description) }
        if let price = report.lastPrice { object["lastPrice"] = .string(price.description) }
        if let time = report.lastSuccess { object["lastSuccess"] = .string(HTTPDate.rfc3339(time.milliseconds)) }
        if let failure = report.lastFailure {
            object["lastFailure"] = .object([
                "time": .string(HTTPDate.rfc3339(failure.at.milliseconds)), "kind": .string(failure.kind),
            ])
        }
        if let until = report.cooldownUntil {
            object["cooldownUntil"] = .string(HTTPDate.rfc3339(until.milliseconds))
        }
        if let latency = report.latency {
            object["latency"] = .object([
                "p50Ms": .integer(latency.p50), "p90Ms": .integer(latency.p90), "p99Ms": .integer(latency.p99),
            ])
        }
        return object
    }

    // MARK: - Other programs'

    /// mempool's `/api/v1/prices`: `{"time":1795340000,"USD":68901.23}`. The time is that of the oldest price, Unix seconds.
    static func mempoolPrices(_ states: [PriceState]) -> JSONObject {
        let oldest = states.compactMap { $0.quote?.timestamp.milliseconds }.min() ?? 0
        var object: JSONObject = ["time": .integer(oldest / 1000)]
        for state in states { object[state.currency] = state.quote.map { .number($0.value.description) } }
        return object
    }

    /// mempool's exchange rates: `{"USDEUR":0.86}`. From the dollar to each other currency, derived from the prices of a bitcoin.
    static func exchangeRates(_ states: [PriceState]) -> JSONObject {
        var rates = JSONObject()
        guard let dollars = states.first(where: { $0.currency == Currency.usd.rawValue })?.quote?.value else {
            return rates
        }
        for state in states where state.currency != Currency.usd.rawValue {
            rates["USD\(state.currency)"] = state.quote.map {
                .number($0.value.divided(by: dollars, places: 4).description)
            }
        }
        return rates
    }

    /// What LNbits reads from a price aggregator: `{"rates":{"median":68901.23}}`
    static func aggregate(_ state: PriceState) -> JSONObject {
        [
            "currency": .string(state.currency),
            "rates": .object(["median": state.quote.map { .number($0.value.description) } ?? .null]),
        ]
    }

    /// What rate providers of BTCPay Server read: `{"BTC":{"USD":68901.23}}`
    static func rates(_ states: [PriceState]) -> JSONObject {
        var rates = JSONObject()
        for state in states { rates[state.currency] = state.quote.map { .number($0.value.description) } }
        return ["BTC": .object(rates)]
    }

    /// What BTCPay Server itself serves at `/api/rates`: one object for each pair.
    static func rateList(_ states: [PriceState]) -> JSON {
        .array(
            states.compactMap { state in
                guard let quote = state.quote else { return nil }
                return .object([
                    "name": .string(Currency(rawValue: state.currency)?.englishName ?? state.currency),
                    "cryptoCode": .string("BTC"), "currencyPair": .string("BTC_\(state.currency)"),
                    "code": .string(state.currency), "rate": .number(quote.value.description),
                ])
            })
    }
}

/// Why a price is not current, for clients of the gateway.
enum StaleReason {
    /// Parts of ``FetchFailure/description`` and of the other reasons of a state, and what they mean. The first one that occurs counts.
    private static let kinds: [(parts: [String], meaning: String)] = [
        (["no tick has finished"], "no update has ended in time"),
        (["no tick since"], "no update has ended yet"),
        ([" contradict"], "the exchanges contradict each other"),
        ([" have to agree, and only "], "too few exchanges agree"),
        (["implausible: "], "no second exchange confirms the price"),
        (["invalid response: ", "stale response: "], "no exchange sent a usable price"),
    ]
    private static let refusals = [": refused: ", ", refused: ", ": rate limited", ", rate limited"]
    private static let silences = ["not reached: ", "no response ", "not available", " can be reached ("]

    /// - Parameters:
    ///   - failure: The daemon's text, which may name addresses; `nil` before the first tick.
    ///   - ticking: Whether the ticks run; `nil` if that is not known.
    static func text(of failure: String?, ticking: Ticking? = nil) -> String {
        guard let failure else { return "no update has ended yet" }
        if failure == PriceState.pausedFailure {
            return ticking == .idle
                ? "the updates are paused while no program reads the price" : "the updates are paused"
        }
        let contains = { (parts: [String]) in parts.contains(where: failure.holds) }
        if let kind = kinds.first(where: { contains($0.parts) }) { return kind.meaning }
        switch (contains(refusals), contains(silences)) {
        case (true, false): return "the exchanges refuse the requests"
        case (false, true): return "no exchange responded"
        case (true, true): return "the exchanges refuse the requests or do not respond"
        case (false, false): break
        }
        let none = FetchFailure().description
        if failure == none { return none }
        return contains(["as its limit allows"])
            ? "the exchanges' limits allow no request yet" : "the last update failed"
    }
}
