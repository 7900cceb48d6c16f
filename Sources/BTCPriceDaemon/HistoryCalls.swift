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
            case .getDay: return CallAnswer(.day(history.day(of: currency, at: now()), of: currency.rawValue))
            }
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
        var candles: [Candle]
        if query.step == .second {
            candles = history.seconds(of: past.stored, in: range, limit: batch + 1)
        } else {
            candles = try await store.candles(
                of: past.stored, query.step, in: range, limit: batch + 1, for: user)
        }
        var next: Timestamp?
        if candles.count > batch {
            next = Timestamp(milliseconds: candles.removeLast().start * 1000)
        }
        var later: HistoryQuery?
        if let next, query.more, query.limit.map({ $0 > batch }) ?? true {
            later = HistoryQuery(
                currency: query.currency, from: next, to: to, step: query.step, limit: query.limit.map { $0 - batch },
                more: true)
        }
        return CallAnswer(
            .history(candles.compactMap(past.candle), of: past.currency.rawValue, query.step, next: next),
            next: later.map { .history(.getHistory($0)) })
    }

    /// What is known of some moments.
    /// - Parameter fetches: Whether minutes of which too little is known are requested from an exchange.
    /// - Returns: Also after what time the minutes may be requested that have not been, milliseconds; `nil` if there are none.
    private func prices(
        at times: [Timestamp], in past: Past, fetches: Bool, for user: UInt32
    ) async throws(HistoryError) -> (prices: [MomentMessage], wait: Int64?) {
        var known = try await prices(at: times, in: past, for: user)
        let missing = times.indices.filter { known[$0]?.isCoarse ?? true }
        guard fetches, !missing.isEmpty else { return (zip(times, known).map { MomentMessage($0, $1) }, nil) }
        let present = now().wall
        let over = missing.filter { times[$0] <= present }
        let fetched = over.isEmpty ? .init() : await fetch(past.stored, over.map { times[$0].lastSecond }, user)
        for (index, price) in zip(over, try await prices(at: over.map { times[$0] }, in: past, for: user)) {
            known[index] = price
        }
        let prices = times.indices.map { index in
            let isWanted = known[index]?.isCoarse ?? true
            let reason =
                times[index] > present
                ? "it is in the future" : fetched.failures[Candle.Step.minute.start(of: times[index].lastSecond)]
            return MomentMessage(times[index], known[index], notFetched: isWanted ? reason : nil)
        }
        return (prices, fetched.wait)
    }

    private func prices(
        at times: [Timestamp], in past: Past, for user: UInt32
    ) async throws(HistoryError) -> [PriceAt?] {
        let present = now().wall
        var known = [PriceAt?](repeating: nil, count: times.count)
        var stored: [Int] = []
        for (index, time) in times.enumerated() where time <= present {
            let second = time.lastSecond
            // Before the tick of a second, the price of the one before is shown.
            if let candle = history.seconds(of: past.stored, in: second - 1..<second + 1).last {
                known[index] = past.candle(candle).map { PriceAt($0, .second, at: second) }
            } else {
                stored.append(index)
            }
        }
        guard !stored.isEmpty else { return known }
        let seconds = stored.map { times[$0].lastSecond }
        let candles = try await store.candles(of: past.stored, at: seconds, for: user)
        for (index, found) in zip(stored, candles) {
            guard let (candle, step) = found else { continue }
            known[index] = past.candle(candle).map { PriceAt($0, step, at: times[index].lastSecond) }
        }
        return known
    }
}

/// Where the past of a currency is.
private struct Past {
    let currency: Currency
    /// The currency whose candles are stored.
    let stored: Currency
    /// The rates of the days between the two; `nil` if it is the same currency, or none are known.
    private let rates: RateHistory?

    init(_ currency: Currency, _ derivation: (base: Currency, rates: RateHistory?)?) {
        self.currency = currency
        (stored, rates) = derivation ?? (currency, nil)
    }

    /// A stored candle as one of the currency; `nil` if no rate of its day is known.
    func candle(_ stored: Candle) -> Candle? {
        guard currency != self.stored else { return stored }
        return rates?.rate(of: currency, per: self.stored, on: RateHistory.day(of: stored.start)).flatMap {
            stored.derived($0, in: currency)
        }
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
