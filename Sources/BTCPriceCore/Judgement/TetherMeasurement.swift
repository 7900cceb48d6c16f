import FoundationEssentials
import Glibc

/// What USDT is worth, by the BTC markets in both currencies: a pure value.
struct TetherMeasurement: Sendable {
    private struct Measurement: Sendable {
        var log: Double
        var previous: Double?
        var at: Int64

        /// Of the last two the one nearer to the peg: one odd answer does not take USDT off it.
        var careful: Double { previous.map { abs($0) < abs(log) ? $0 : log } ?? log }
    }

    /// By the dollar source.
    private var measurements: [String: Measurement] = [:]
    private var isOffPeg = false
    /// The rate as it is now; `nil` before the first measurement.
    private(set) var rate: TetherRate?

    /// The rate, if it is not too old to convert a price with.
    func usableRate(at boottime: Int64) -> TetherRate? {
        rate.flatMap { boottime - $0.measuredBoottime <= JudgementBounds.oldestRate ? $0 : nil }
    }

    /// A USDT price and a USD price were seen side by side.
    /// - Parameters:
    ///   - log: The natural logarithm of the USD price divided by the USDT price.
    ///   - source: The USD source.
    ///   - boottime: When, `CLOCK_BOOTTIME` in milliseconds.
    mutating func measured(_ log: Double, by source: String, at boottime: Int64) {
        let last = measurements[source]
        let age = last.map { boottime - $0.at } ?? .max
        if let last, age < JudgementBounds.sideBySide {
            // Within the same look it is the same measurement.
            measurements[source] = Measurement(log: log, previous: last.previous, at: last.at)
        } else {
            // One from long ago says nothing of now.
            measurements[source] = Measurement(
                log: log, previous: age <= JudgementBounds.lately ? last?.log : nil, at: boottime)
        }
        let recent = measurements.filter { boottime - $0.value.at <= JudgementBounds.lately }
        let ordered = recent.values.sorted { abs($0.careful) < abs($1.careful) }
        let chosen = ordered[(ordered.count - 1) / 2].careful
        if abs(chosen) >= JudgementBounds.offPeg.from { isOffPeg = true }
        if abs(chosen) < JudgementBounds.offPeg.back { isOffPeg = false }
        rate = TetherRate(
            value: Decimal(Int64((exp(chosen) * 1_000_000).rounded())) / 1_000_000, sources: recent.keys.sorted(),
            measuredBoottime: boottime, isOffPeg: isOffPeg)
    }
}
