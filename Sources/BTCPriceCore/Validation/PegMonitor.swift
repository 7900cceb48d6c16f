import Glibc

/// Measures the value of USDT: a pure value.
///
/// There are two kinds of measurement. A USDT/USD market states it, and the bitcoin markets in both currencies imply it. A USDT market
/// that is wrong and a USDT that has left its peg look the same to the bitcoin markets, so they alone never prove that it has: the
/// USDT/USD market must state the same.
struct PegMonitor: Sendable {
    private struct Measurement: Sendable {
        var log: Double
        var previous: Double?
        var at: BootTime

        init(_ log: Double, after last: Measurement?, at boottime: BootTime) {
            let age = last.map { boottime - $0.at } ?? .max
            if let last, age < Bounds.sameMoment {
                // It is the same measurement.
                (self.log, previous, at) = (log, last.previous, last.at)
            } else {
                // An old measurement says nothing about the present.
                (self.log, previous, at) = (log, age <= Bounds.lately ? last?.log : nil, boottime)
            }
        }

        /// The one of the last two that is nearer to the peg, so that one wrong price does not take USDT off its peg.
        var careful: Double { previous.map { abs($0) < abs(log) ? $0 : log } ?? log }
    }

    /// What the bitcoin markets imply, by the dollar venue.
    private var implied: [String: Measurement] = [:]
    /// What a USDT/USD market stated last.
    private var stated: (venue: String, measurement: Measurement, at: BootTime)?
    private var isOffPeg = false
    /// What a USDT/USD market stated, and the bitcoin markets did not contradict.
    private var confirmedLog = 0.0
    /// The exchange that states ``confirmedLog``, if no other one implies it.
    private var onlyStater: String?
    /// The current rate; `nil` before the first measurement.
    private(set) var rate: PegRate?

    /// The rate, if it is recent enough to convert a price. While USDT is off its peg, its value moves.
    func conversionRate(at boottime: BootTime) -> PegRate? {
        guard let rate = usableRate(at: boottime) else { return nil }
        return !rate.isOffPeg || boottime - rate.measuredBoottime <= Bounds.lately ? rate : nil
    }

    /// The rate, if it is recent enough to decide whether USDT is off its peg.
    func usableRate(at boottime: BootTime) -> PegRate? {
        rate.flatMap { boottime - $0.measuredBoottime <= Bounds.oldestRate ? $0 : nil }
    }

    /// The possible values of a USDT now, as natural logarithms. `stater` is the exchange on whose statement alone a value depends.
    func logs(at boottime: BootTime) -> [(log: Double, stater: String?)] {
        let confirmed = (log: confirmedLog, stater: isOffPeg ? onlyStater : nil)
        guard let stated else { return [confirmed] }
        if boottime - stated.at <= Bounds.lately {
            return confirmedLog == stated.measurement.log
                ? [confirmed] : [confirmed, (stated.measurement.log, stated.venue)]
        }
        // Without a statement for a while, it may be back at its peg.
        return boottime - stated.at <= Bounds.statementLasts ? [confirmed] : [confirmed, (0, nil)]
    }

    /// Whether a USDT/USD market has stated the rate since `boottime`.
    func isStated(after boottime: BootTime) -> Bool { stated.map { $0.at > boottime } ?? false }

    /// Records the value of a USDT that a USDT/USD market has stated.
    /// - Parameter value: Dollars for one USDT.
    mutating func state(_ value: Price, by venue: String, at boottime: BootTime) {
        let last = stated.flatMap { $0.venue == venue ? $0.measurement : nil }
        stated = (venue, Measurement(value.logarithm, after: last, at: boottime), boottime)
        update(at: boottime)
    }

    /// Records the value of a USDT that a USDT price and a USD price of the same moment imply.
    /// - Parameters:
    ///   - log: The natural logarithm of the USD price divided by the USDT price.
    ///   - venue: The venue of the USD price.
    mutating func imply(_ log: Double, by venue: String, at boottime: BootTime) {
        implied[venue] = Measurement(log, after: implied[venue], at: boottime)
        update(at: boottime)
    }

    private mutating func update(at boottime: BootTime) {
        let recent = implied.filter { boottime - $0.value.at <= Bounds.lately }
        let implied = Self.middle(of: recent.values.map(\.careful))
        if let stated, boottime - stated.at <= Bounds.statementLasts {
            // An exchange has one vote: its own bitcoin price is no second opinion on what it states, if there is another one.
            let others = recent.filter { $0.key != stated.venue }
            let judges = others.isEmpty ? recent : others
            let implied = Self.middle(of: judges.values.map(\.careful))
            // Two measurements that agree need no caution.
            let isAgreed = [implied, Self.middle(of: judges.values.map(\.log))].contains { implied in
                implied.map { abs($0 - stated.measurement.log) <= Bounds.agreement } ?? true
            }
            let value = implied != nil && isAgreed ? stated.measurement.log : stated.measurement.careful
            if isAgreed, abs(value) >= Bounds.offPeg.from { isOffPeg = true }
            if abs(value) < Bounds.offPeg.back { isOffPeg = false }
            guard isAgreed || abs(value) < Bounds.offPeg.from else { return }
            confirmedLog = value
            onlyStater = others.isEmpty ? stated.venue : nil
            set(value, sources: [stated.venue] + recent.keys.filter { $0 != stated.venue }.sorted(), at: stated.at)
        } else if let implied, abs(implied) < Bounds.offPeg.from {
            if abs(implied) < Bounds.offPeg.back { isOffPeg = false }
            confirmedLog = isOffPeg ? confirmedLog : 0
            set(implied, sources: recent.keys.sorted(), at: boottime)
        } else if let implied, isOffPeg, abs(implied - confirmedLog) <= Bounds.agreement {
            // It was proved before and lasts: while the bitcoin markets imply the same value, they are enough.
            set(implied, sources: recent.keys.sorted(), at: boottime)
        }
    }

    /// The median, by distance from the peg.
    private static func middle(of logs: [Double]) -> Double? {
        logs.isEmpty ? nil : logs.sorted { abs($0) < abs($1) }[(logs.count - 1) / 2]
    }

    private mutating func set(_ log: Double, sources: [String], at boottime: BootTime) {
        rate = PegRate(
            value: Price(Int64((exp(log) * 1_000_000).rounded()), scale: 6), sources: sources,
            measuredBoottime: boottime, isOffPeg: isOffPeg)
    }
}

extension PegMonitor {
    /// The constants; see `docs/validation.md`. Times are in milliseconds, moves natural logarithms.
    enum Bounds {
        /// Two prices are of the same moment if they are at most this far apart.
        static let sameMoment = Duration.seconds(5).wholeMilliseconds
        /// How long a measurement is recent.
        static let lately = Duration.seconds(120).wholeMilliseconds
        /// How long the statement of a USDT/USD market may be the current value of USDT.
        static let statementLasts = Duration.seconds(300).wholeMilliseconds
        /// How far the bitcoin markets and a USDT/USD market may differ over the value of USDT.
        static let agreement = 0.01
        /// USDT is off its peg from the first value on, and back below the second one: in quiet years it stays within 0.2 %.
        static let offPeg = (from: 0.01, back: 0.008)
        /// The oldest rate that counts. While USDT is off its peg, a price is converted only with a recent rate.
        static let oldestRate = Duration.seconds(3600).wholeMilliseconds
    }
}
