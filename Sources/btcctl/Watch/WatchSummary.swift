import BTCPriceCore
import BTCPriceFeature
import Glibc

/// What was seen while a screen was open. A pure value.
struct WatchSummary {
    /// The prices of one currency.
    private struct Seen {
        let since: ContinuousClock.Instant
        var ticks = 0
        var missed = 0
        /// The number of the last tick.
        var number: Int64
        /// `nil` without a fresh price.
        var candle: Candle?
    }

    private var currencies: [String: Seen] = [:]

    mutating func see(_ state: PriceState, at now: ContinuousClock.Instant = .now) {
        let number = state.ticks.number
        var seen = currencies[state.currency] ?? Seen(since: now, number: number - 1)
        defer { currencies[state.currency] = seen }
        let candle = Candle(state, at: 0)
        // Between the ticks, the number stays. A daemon that was started again counts from 1.
        if number != seen.number {
            seen.ticks += 1
            if candle == nil { seen.missed += 1 }
        }
        seen.number = number
        guard let candle else { return }
        if seen.candle == nil { seen.candle = candle } else { seen.candle?.add(candle) }
    }

    /// A line for each currency: `BTC/USD: 720 ticks in 12 min, 2 missed; low $68,000.00, high $68,150.50, +0.12 %`.
    func lines(at now: ContinuousClock.Instant = .now) -> [String] {
        currencies.sorted { $0.key < $1.key }.map { currency, seen in
            var line = "BTC/\(currency): \(seen.ticks) tick\(seen.ticks == 1 ? "" : "s") "
            line += "in \(Table.text(seen.since.duration(to: now))), \(seen.missed) missed"
            guard let candle = seen.candle else { return line }
            if let doubtful = candle.doubtful, doubtful > 0 {
                line += ", \(doubtful) price\(doubtful == 1 ? "" : "s") in doubt"
            }
            let money = { (price: Price) in MoneyFormatter().string(from: price, currency: currency) }
            let change = PriceDay(
                since: Timestamp(milliseconds: 0), open: candle.open, high: candle.high, low: candle.low,
                close: candle.close
            ).changePercent
            return line + "; low \(money(candle.low)), high \(money(candle.high)), \(PriceTexts.percent(change))"
        }
    }

    /// Prints it, if people read standard error.
    func tell() {
        guard isatty(STDERR_FILENO) == 1 else { return }
        for line in lines() { Output.note(line) }
    }
}
