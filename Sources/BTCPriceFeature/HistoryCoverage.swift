package import BTCPriceCore

/// How much of a span is known in candles of a step.
package struct HistoryCoverage: Sendable {
    private let seconds: Int64

    package init(from: Timestamp, to: Timestamp) {
        seconds = max(0, to.milliseconds - from.milliseconds) / 1000
    }

    /// How many candles the span has.
    package func count(_ step: Candle.Step) -> Int64 { max(1, seconds / step.seconds) }

    /// Whether a tenth of the candles or more are not known, and at least two.
    package func isPoor(_ known: Int64, _ step: Candle.Step) -> Bool {
        let missing = count(step) - known
        return missing >= 2 && missing * 10 >= count(step)
    }

    /// Whether candles of a step know more of the span than those of a shorter one: a tenth of it, at least.
    package func knowsMore(_ known: Int64, _ step: Candle.Step, than less: Int64, _ shorter: Candle.Step) -> Bool {
        known * step.seconds - less * shorter.seconds > seconds / 10
    }
}
