import BTCPriceCore
import BTCPricePersistence
import BTCPriceSocket

/// Handles the calls to `io.btcpriced.History`.
struct HistoryCalls: Sendable {
    let history: PriceHistory
    let store: HistoryStore
    /// Requests minutes that contain moments from an exchange.
    let fetch: @Sendable (Currency, _ seconds: [Int64], _ user: UInt32) async -> Backfill.Fetched
    /// The history's time.
    let now: TimeSource

    /// - Parameters:
    ///   - user: The caller's user ID.
    ///   - kept: The currencies that are kept, at least one. The first one is that of a call that names none.
    func answer(to call: HistoryCall, of user: UInt32, kept: [Currency]) async -> CallAnswer {
        let named = call.currency.map(Currency.init(rawValue:)) ?? kept[0]
        guard let currency = named else { return CallAnswer(.noSuchCurrency(call.currency ?? "", kept: kept)) }
        do throws(HistoryError) {
            switch call {
            case .getHistory(let query): return try await candles(query, of: currency, for: user)
            case .getPriceAt(let time, _, let fetches):
                let (prices, wait) = try await prices(at: [time], in: currency, fetches: fetches, for: user)
                let busy = wait.map {
                    "user \(user) has requested as much as one may: try again in \(($0 + 999) / 1000) s"
                }
                return CallAnswer(
                    .priceAt(prices[0].known, in: currency.rawValue, notFetched: prices[0].notFetched ?? busy))
            case .getPricesAt(let times, _, let fetches):
                let (prices, wait) = try await prices(at: times, in: currency, fetches: fetches, for: user)
                return CallAnswer(.pricesAt(prices, in: currency.rawValue, wait: wait))
            case .getDay: return CallAnswer(.day(history.day(of: currency, at: now()), of: currency.rawValue))
            }
        } catch {
            return CallAnswer(.historyUnavailable(error.description))
        }
    }

    private func candles(
        _ query: HistoryQuery, of currency: Currency, for user: UInt32
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
            candles = history.seconds(of: currency, in: range, limit: batch + 1)
        } else {
            candles = try await store.candles(
                of: currency, query.step, in: range, limit: batch + 1, for: user)
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
            .history(candles, of: currency.rawValue, query.step, next: next),
            next: later.map { .history(.getHistory($0)) })
    }

    /// What is known of some moments.
    /// - Parameter fetches: Whether minutes of which too little is known are requested from an exchange.
    /// - Returns: Also after what time the minutes may be requested that have not been, milliseconds; `nil` if there are none.
    private func prices(
        at times: [Timestamp], in currency: Currency, fetches: Bool, for user: UInt32
    ) async throws(HistoryError) -> (prices: [MomentMessage], wait: Int64?) {
        var known = try await prices(at: times, in: currency, for: user)
        let missing = times.indices.filter { known[$0]?.isCoarse ?? true }
        guard fetches, !missing.isEmpty else { return (zip(times, known).map { MomentMessage($0, $1) }, nil) }
        let present = now().wall
        let past = missing.filter { times[$0] <= present }
        let fetched = past.isEmpty ? .init() : await fetch(currency, past.map { times[$0].lastSecond }, user)
        for (index, price) in zip(past, try await prices(at: past.map { times[$0] }, in: currency, for: user)) {
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
        at times: [Timestamp], in currency: Currency, for user: UInt32
    ) async throws(HistoryError) -> [PriceAt?] {
        let present = now().wall
        var known = [PriceAt?](repeating: nil, count: times.count)
        var stored: [Int] = []
        for (index, time) in times.enumerated() where time <= present {
            let second = time.lastSecond
            // Before the tick of a second, the price of the one before is shown.
            if let candle = history.seconds(of: currency, in: second - 1..<second + 1).last {
                known[index] = PriceAt(candle, .second, at: second)
            } else {
                stored.append(index)
            }
        }
        guard !stored.isEmpty else { return known }
        let seconds = stored.map { times[$0].lastSecond }
        let candles = try await store.candles(of: currency, at: seconds, for: user)
        for (index, found) in zip(stored, candles) {
            known[index] = found.map { PriceAt($0, $1, at: times[index].lastSecond) }
        }
        return known
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
