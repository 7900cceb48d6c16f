import Glibc

/// What USDT is worth: a pure value.
///
/// Two things tell it. A USDT/USD market says it outright, and the bitcoin markets in both currencies imply it. A USDT market that lies and a USDT
/// that has left its peg look alike to the bitcoin markets, so they alone never prove that it has: the USDT/USD market has to say the same.
struct TetherMeasurement: Sendable {
    private struct Measurement: Sendable {
        var log: Double
        var previous: Double?
        var at: Int64

        init(_ log: Double, after last: Measurement?, at boottime: Int64) {
            let age = last.map { boottime - $0.at } ?? .max
            if let last, age < JudgementBounds.sideBySide {
                // Within the same look it is the same measurement.
                (self.log, previous, at) = (log, last.previous, last.at)
            } else {
                // One from long ago says nothing of now.
                (self.log, previous, at) = (log, age <= JudgementBounds.lately ? last?.log : nil, boottime)
            }
        }

        /// Of the last two the one nearer to the peg: one odd answer does not take USDT off it.
        var careful: Double { previous.map { abs($0) < abs(log) ? $0 : log } ?? log }
    }

    /// What the bitcoin markets imply, by the dollar source.
    private var measurements: [String: Measurement] = [:]
    /// What a USDT/USD market told last.
    private var told: (source: String, measurement: Measurement, at: Int64)?
    private var isOffPeg = false
    /// What a USDT/USD market told, and the bitcoin markets did not contradict.
    private var confirmedLog = 0.0
    /// The rate as it is now; `nil` before the first measurement.
    private(set) var rate: TetherRate?

    /// The rate, if it is not too old to convert a price with: off its peg USDT moves.
    func conversionRate(at boottime: Int64) -> TetherRate? {
        guard let rate = usableRate(at: boottime) else { return nil }
        return !rate.isOffPeg || boottime - rate.measuredBoottime <= JudgementBounds.lately ? rate : nil
    }

    /// The rate, if it is not too old to say whether USDT is off its peg.
    func usableRate(at boottime: Int64) -> TetherRate? {
        rate.flatMap { boottime - $0.measuredBoottime <= JudgementBounds.oldestRate ? $0 : nil }
    }

    /// The natural logarithms of what a USDT may be worth now: the rate that holds, and what was told since.
    func logs(at boottime: Int64) -> [Double] {
        guard let told else { return [confirmedLog] }
        if boottime - told.at <= JudgementBounds.lately { return [confirmedLog, told.measurement.log] }
        // Nobody has told it for a while: it may be back at its peg.
        return boottime - told.at <= JudgementBounds.tetherTold ? [confirmedLog] : [confirmedLog, 0]
    }

    /// Whether a USDT/USD market has told the rate since then.
    func isTold(after boottime: Int64) -> Bool { told.map { $0.at > boottime } ?? false }

    /// A USDT/USD market has told what a USDT is worth.
    /// - Parameters:
    ///   - value: Dollars for one USDT.
    ///   - source: Who told it.
    ///   - boottime: When, `CLOCK_BOOTTIME` in milliseconds.
    mutating func told(_ value: Price, by source: String, at boottime: Int64) {
        let last = told.flatMap { $0.source == source ? $0.measurement : nil }
        told = (source, Measurement(value.logarithm, after: last, at: boottime), boottime)
        update(at: boottime)
    }

    /// A USDT price and a USD price were seen side by side.
    /// - Parameters:
    ///   - log: The natural logarithm of the USD price divided by the USDT price.
    ///   - source: The USD source.
    ///   - boottime: When, `CLOCK_BOOTTIME` in milliseconds.
    mutating func measured(_ log: Double, by source: String, at boottime: Int64) {
        measurements[source] = Measurement(log, after: measurements[source], at: boottime)
        update(at: boottime)
    }

    private mutating func update(at boottime: Int64) {
        let recent = measurements.filter { boottime - $0.value.at <= JudgementBounds.lately }
        let implied = Self.middle(of: recent.values.map(\.careful))
        if let told, boottime - told.at <= JudgementBounds.tetherTold {
            // Two that agree need not be careful.
            let isAgreed = [implied, Self.middle(of: recent.values.map(\.log))].contains { implied in
                implied.map { abs($0 - told.measurement.log) <= JudgementBounds.tetherAgreement } ?? true
            }
            let value = implied != nil && isAgreed ? told.measurement.log : told.measurement.careful
            if isAgreed, abs(value) >= JudgementBounds.offPeg.from { isOffPeg = true }
            if abs(value) < JudgementBounds.offPeg.back { isOffPeg = false }
            guard isAgreed || abs(value) < JudgementBounds.offPeg.from else { return }
            confirmedLog = value
            set(value, sources: [told.source] + recent.keys.filter { $0 != told.source }.sorted(), at: told.at)
        } else if let implied, abs(implied) < JudgementBounds.offPeg.from {
            if abs(implied) < JudgementBounds.offPeg.back { isOffPeg = false }
            confirmedLog = isOffPeg ? confirmedLog : 0
            set(implied, sources: recent.keys.sorted(), at: boottime)
        } else if let implied, isOffPeg, abs(implied - confirmedLog) <= JudgementBounds.tetherAgreement {
            // It was proved, and lasts: as long as they say the same, the bitcoin markets are enough.
            set(implied, sources: recent.keys.sorted(), at: boottime)
        }
    }

    /// The median by the distance from the peg.
    private static func middle(of logs: [Double]) -> Double? {
        logs.isEmpty ? nil : logs.sorted { abs($0) < abs($1) }[(logs.count - 1) / 2]
    }

    private mutating func set(_ log: Double, sources: [String], at boottime: Int64) {
        rate = TetherRate(
            value: Price(Int64((exp(log) * 1_000_000).rounded()), scale: 6), sources: sources,
            measuredBoottime: boottime, isOffPeg: isOffPeg)
    }
}
