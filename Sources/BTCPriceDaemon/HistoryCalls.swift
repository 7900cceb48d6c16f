import BTCPriceCore
import BTCPricePersistence
import BTCPriceSocket

/// Handles the calls to `io.btcpriced.History`.
struct HistoryCalls: Sendable {
    let history: PriceHistory
    let store: HistoryStore
    /// Fetches a minute from an exchange. Returns the reason in one line if that fails.
    let fetch: @Sendable (Currency, _ second: Int64, _ user: UInt32) async -> String?
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
                var known = try await price(at: time, in: currency, for: user)
                var reason: String?
                if fetches, known?.isCoarse ?? true {
                    reason = time <= now().wall ? await fetch(currency, time.lastSecond, user) : "it is in the future"
                    if reason == nil { known = try await price(at: time, in: currency, for: user) }
                }
                return CallAnswer(.priceAt(known, in: currency.rawValue, notFetched: reason))
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

    private func price(
        at time: Timestamp, in currency: Currency, for user: UInt32
    ) async throws(HistoryError) -> PriceAt? {
        guard time <= now().wall else { return nil }
        let second = time.lastSecond
        // Before the tick of a second, the price of the one before is shown.
        if let candle = history.seconds(of: currency, in: second - 1..<second + 1).last {
            return PriceAt(candle, .second, at: second)
        }
        return try await store.candle(of: currency, at: second, for: user).map { PriceAt($0, $1, at: second) }
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
