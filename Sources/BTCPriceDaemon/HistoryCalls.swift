import BTCPriceCore
import BTCPricePersistence
import BTCPriceSocket

/// Handles the calls to `io.btcpriced.History`.
struct HistoryCalls: Sendable {
    let history: PriceHistory
    let store: HistoryStore
    /// Requests minutes that contain moments from an exchange.
    let fetch: @Sendable (Currency, _ seconds: [Int64], _ user: UInt32) async -> Backfill.Fetched
    /// The currency that one without markets is derived from, and the rates of past days, as far as they are known; `nil` for any other one.
    let derivation: @Sendable (Currency) async -> (base: Currency, rates: RateHistory?)?
    /// The history's time.
    let now: TimeSource

    /// - Parameters:
    ///   - user: The caller's user ID.
    ///   - kept: The currencies that are kept, at least one. The first one is that of a call that names none.
    func answer(to call: HistoryCall, of user: UInt32, kept: [Currency]) async -> CallAnswer {
        if case .getEvents(let query) = call, query.currency == nil { return await events(query, for: user) }
        let named = call.currency.map(Currency.init(rawValue:)) ?? kept[0]
        guard let currency = named else { return CallAnswer(.noSuchCurrency(call.currency ?? "", kept: kept)) }
        let past = Past(currency, await derivation(currency))
        do throws(HistoryError) {
            switch call {
            case .getHistory(let query): return try await candles(query, of: past, for: user)
            case .getPriceAt(let time, _, let fetches):
                let (prices, wait) = try await prices(at: [time], in: past, fetches: fetches, for: user)
                let busy = wait.map {
                    "user \(user) has requested as much as one may: try again in \(($0 + 999) / 1000) s"
                }
                return CallAnswer(
                    .priceAt(prices[0].known, in: currency.rawValue, notFetched: prices[0].notFetched ?? busy))
            case .getPricesAt(let times, _, let fetches):
                let (prices, wait) = try await prices(at: times, in: past, fetches: fetches, for: user)
                return CallAnswer(.pricesAt(prices, in: currency.rawValue, wait: wait))
            case .getEvents(let query): return await events(query, for: user)
            case .getDay: return CallAnswer(.day(history.day(of: currency, at: now()), of: currency.rawValue))
            }
        } catch {
            return CallAnswer(.historyUnavailable(error.description))
        }
    }

    private func events(_ query: EventQuery, for user: UInt32) async -> CallAnswer {
        let to = query.to ?? Timestamp(milliseconds: now().wall.milliseconds + 1)
        let from = query.from ?? Timestamp(milliseconds: to.milliseconds - Candle.Step.day.seconds * 1000)
        let range = from.firstSecond..<max(from.firstSecond, to.firstSecond)
        do throws(HistoryError) {
            let found = try await store.episodes(
                in: range, from: query.after?.firstSecond, of: query.currency.flatMap(Currency.init),
                limit: EventQuery.batch, for: user)
            let next = found.next.map { Timestamp(milliseconds: $0 * 1000) }
            return CallAnswer(.events(found.episodes.map(EventMessage.init), next: next))
        } catch {
            return CallAnswer(.historyUnavailable(error.description))
        }
    }

    private func candles(
        _ query: HistoryQuery, of past: Past, for user: UInt32
    ) async throws(HistoryError) -> CallAnswer {
        let to = query.to ?? Timestamp(milliseconds: now().wall.milliseconds + 1)
        let from = query.from ?? Timestamp(milliseconds: to.milliseconds - Candle.Step.day.seconds * 1000)
        // Candles start at whole seconds.
        let start = from.firstSecond
        let range = start..<max(start, to.firstSecond)
        let batch = min(query.limit ?? .max, HistoryQuery.batch)
        // One candle more than the batch shows whether another batch follows.
        var found = try await stored(query.step, of: past.currency, in: range, limit: batch + 1, for: user)
        let isOwn = Set(found.map(\.start))
        if let base = past.base {
            found += try await stored(query.step, of: base, in: range, limit: batch + 1, for: user)
                .filter { !isOwn.contains($0.start) }
            found.sort { $0.start < $1.start }
        }
        let next = found.count > batch ? Timestamp(milliseconds: found[batch].start * 1000) : nil
        let candles = found.prefix(batch).compactMap { isOwn.contains($0.start) ? $0 : past.derived($0) }
        var later: HistoryQuery?
        if let next, query.more, query.limit.map({ $0 > batch }) ?? true {
            later = HistoryQuery(
                currency: query.currency, from: next, to: to, step: query.step, limit: query.limit.map { $0 - batch },
                more: true)
        }
        return CallAnswer(
            .history(candles, of: past.currency.rawValue, query.step, next: next),
            next: later.map { .history(.getHistory($0)) })
    }

    private func stored(
        _ step: Candle.Step, of currency: Currency, in range: Range<Int64>, limit: Int, for user: UInt32
    ) async throws(HistoryError) -> [Candle] {
        step == .second
            ? history.seconds(of: currency, in: range, limit: limit)
            : try await store.candles(of: currency, step, in: range, limit: limit, for: user)
    }

    /// What is known of some moments.
    /// - Parameter fetches: Whether minutes of which too little is known are requested from an exchange.
    /// - Returns: Also after what time the minutes may be requested that have not been, milliseconds; `nil` if there are none.
    private func prices(
        at times: [Timestamp], in past: Past, fetches: Bool, for user: UInt32
    ) async throws(HistoryError) -> (prices: [MomentMessage], wait: Int64?) {
        let present = now().wall
        var known = try await stored(at: times, in: past, for: user)
        var fetched = Backfill.Fetched()
        let missing = times.indices.filter { times[$0] <= present && !known[$0].isPrecise }
        if fetches, !missing.isEmpty {
            fetched = await fetch(past.base ?? past.currency, missing.map { times[$0].lastSecond }, user)
            let again = try await stored(at: missing.map { times[$0] }, in: past, for: user)
            for (index, moment) in zip(missing, again) { known[index] = moment }
        }
        let prices = zip(times, known).map { time, known in
            let price = past.price(known, at: time.lastSecond)
            var reason: String?
            if fetches, price?.isCoarse ?? true {
                reason =
                    time > present
                    ? "it is in the future"
                    : known.isPrecise
                        ? "no reference rate of its day is known"
                        : fetched.failures[Candle.Step.minute.start(of: time.lastSecond)]
            }
            return MomentMessage(time, price, notFetched: reason)
        }
        return (prices, fetched.wait)
    }

    private func stored(
        at times: [Timestamp], in past: Past, for user: UInt32
    ) async throws(HistoryError) -> [Known] {
        var known = try await stored(at: times, of: past.currency, for: user).map { Known(own: $0) }
        guard let base = past.base else { return known }
        for (index, price) in try await stored(at: times, of: base, for: user).enumerated() {
            known[index].base = price
        }
        return known
    }

    private func stored(
        at times: [Timestamp], of currency: Currency, for user: UInt32
    ) async throws(HistoryError) -> [PriceAt?] {
        let present = now().wall
        var known = [PriceAt?](repeating: nil, count: times.count)
        var others: [Int] = []
        for (index, time) in times.enumerated() where time <= present {
            let second = time.lastSecond
            // Before the tick of a second, the price of the one before is shown.
            if let candle = history.seconds(of: currency, in: second - 1..<second + 1).last {
                known[index] = PriceAt(candle, .second, at: second)
            } else {
                others.append(index)
            }
        }
        guard !others.isEmpty else { return known }
        let seconds = others.map { times[$0].lastSecond }
        let candles = try await store.candles(of: currency, at: seconds, for: user)
        for (index, found) in zip(others, candles) {
            known[index] = found.map { PriceAt($0, $1, at: times[index].lastSecond) }
        }
        return known
    }
}

/// What is stored of a moment.
private struct Known {
    /// In the currency itself.
    var own: PriceAt?
    /// In the currency that it is derived from.
    var base: PriceAt?

    /// Whether a whole minute or a second is known.
    var isPrecise: Bool { [own, base].contains { $0?.isCoarse == false } }
}

/// Where the past of a currency is.
private struct Past {
    let currency: Currency
    /// The currency that it is derived from, where it has no candles of its own; `nil` if it has markets.
    let base: Currency?
    private let rates: RateHistory?

    init(_ currency: Currency, _ derivation: (base: Currency, rates: RateHistory?)?) {
        self.currency = currency
        (base, rates) = (derivation?.base, derivation?.rates)
    }

    /// A candle of the other currency as one of this; `nil` if no rate of its day is known.
    func derived(_ candle: Candle) -> Candle? {
        guard let base else { return nil }
        return rates?.rate(of: currency, per: base, on: RateHistory.day(of: candle.start)).flatMap {
            candle.derived($0, in: currency)
        }
    }

    /// The price at a moment: a precise one rather than one of a long candle.
    func price(_ known: Known, at second: Int64) -> PriceAt? {
        if let own = known.own, !own.isCoarse { return own }
        let other = known.base.flatMap { base in derived(base.candle).map { PriceAt($0, base.step, at: second) } }
        if let other, !other.isCoarse { return other }
        return known.own ?? other
    }
}

extension Timestamp {
    /// The first whole second at or after this time, Unix seconds.
    fileprivate var firstSecond: Int64 { -Timestamp(milliseconds: -milliseconds).lastSecond }

    /// The second that contains this time, Unix seconds.
    fileprivate var lastSecond: Int64 {
        Candle.Step.second.start(of: (milliseconds - (milliseconds < 0 ? 999 : 0)) / 1000)
    }
}
