package import BTCPriceCore

/// How much of a span is known in candles of a step.
package struct HistoryCoverage: Sendable {
    private let from: Int64
    private let seconds: Int64

    package init(from: Timestamp, to: Timestamp) {
        self.from = from.wholeSeconds
        seconds = max(0, to.milliseconds - from.milliseconds) / 1000
    }

    /// How many candles the span has.
    package func count(_ step: Candle.Step) -> Int64 { max(1, seconds / step.seconds) }

    /// How many seconds of the span the candles cover. What a part of a candle covers counts as spread over its span.
    package func seconds(in candles: [Candle], _ step: Candle.Step) -> Int64 {
        candles.reduce(0) { sum, candle in
            let shared = max(0, min(from + seconds, candle.start + step.seconds) - max(from, candle.start))
            return sum + (candle.covered.map { shared * $0 / step.seconds } ?? shared)
        }
    }

    /// Whether at least two candles and at least a tenth of all are missing.
    /// - Parameter known: How many seconds are known.
    package func isPoor(_ known: Int64, _ step: Candle.Step) -> Bool {
        let missing = count(step) - known / step.seconds
        return missing >= 2 && missing * 10 >= count(step)
    }

    /// Whether candles that cover so many seconds know more of the span than others. The difference must exceed a tenth of the span.
    package func knowsMore(_ known: Int64, than less: Int64) -> Bool { known - less > seconds / 10 }
}
