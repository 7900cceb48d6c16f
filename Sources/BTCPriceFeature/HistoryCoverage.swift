package import BTCPriceCore

/// How much of a span is known in candles of a step.
package struct HistoryCoverage: Sendable {
    private let seconds: Int64

    package init(from: Timestamp, to: Timestamp) {
        seconds = max(0, to.milliseconds - from.milliseconds) / 1000
    }

    /// How many candles the span has.
    package func count(_ step: Candle.Step) -> Int64 { max(1, seconds / step.seconds) }

    /// Whether at least two candles and at least a tenth of all are missing.
    package func isPoor(_ known: Int64, _ step: Candle.Step) -> Bool {
        let missing = count(step) - known
        return missing >= 2 && missing * 10 >= count(step)
    }

    /// Whether candles of a longer step cover more of the span than those of a shorter one. The difference must exceed a tenth of the span.
    package func knowsMore(_ known: Int64, _ step: Candle.Step, than less: Int64, _ shorter: Candle.Step) -> Bool {
        known * step.seconds - less * shorter.seconds > seconds / 10
    }
}
