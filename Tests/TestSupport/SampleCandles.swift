package import BTCPriceCore
import Glibc

extension Candle {
    /// A course that rises, falls and has a gap.
    /// - Parameters:
    ///   - now: The end of the last one, Unix seconds.
    ///   - gap: The numbers of those that are missing.
    package static func samples(_ step: Step, _ count: Int64, until now: Int64, gap: Range<Int64> = 0..<0) -> [Candle] {
        (0..<count).filter { !gap.contains($0) }.map { index in
            let level = { (place: Int64) in
                Price(
                    Int64(
                        (68_900 + 900 * sin(Double(place) * 7 / Double(count)) + 120
                            * sin(Double(place) * 31 / Double(count))) * 100), scale: 2)
            }
            let (open, close) = (level(index), level(index + 1))
            return Candle(
                start: now - (count - index) * step.seconds, open: open, high: max(open, close) + 15,
                low: min(open, close) - 12, close: close, ticks: 60, fresh: 60)
        }
    }
}
