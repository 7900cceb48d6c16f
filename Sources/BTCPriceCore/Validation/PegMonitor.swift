import Glibc

/// Measures the value of USDT: a pure value.
///
/// There are two kinds of measurement. A USDT/USD market states it, and the bitcoin markets in both currencies imply it. A USDT market
/// that is wrong and a USDT that has left its peg look the same to the bitcoin markets, so they alone never prove that it has: the
/// USDT/USD market must state the same.
struct PegMonitor: Sendable {
    fileprivate struct Measurement: Sendable {
        let log: Double
        let previous: Double?
        let at: BootTime

        init(_ log: Double, after last: Measurement?, at boottime: BootTime) {
            let age = last.map { boottime - $0.at } ?? .max
            if let last, age < Vote.Bounds.moment {
                // Within a moment of the last one, it replaces that one and does not become its successor.
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
    /// When the newest statement that was taken was made.
    private var taken: BootTime?
    private var isOffPeg = false
    /// What a USDT/USD market stated, and the bitcoin markets did not contradict.
    private var confirmedLog = 0.0
    /// The exchange that states ``confirmedLog``, if no other one implies it.
    private var onlyStater: String?
    /// The exchange on whose word alone a value of USDT off its peg depends; `nil` if there is none.
    var onlyWord: String? { isOffPeg ? onlyStater : nil }
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
    /// - Parameter stated: What a USDT/USD market stated last.
    func logs(beside stated: StatedRate?, at boottime: BootTime) -> [(log: Double, stater: String?)] {
        let confirmed = (log: confirmedLog, stater: isOffPeg ? onlyStater : nil)
        guard let stated else { return [confirmed] }
        if boottime - stated.at <= Bounds.lately {
            return confirmedLog == stated.measurement.log
                ? [confirmed] : [confirmed, (stated.measurement.log, stated.venue)]
        }
        // Without a statement for a while, it may be back at its peg.
        return boottime - stated.at <= Bounds.statementLasts ? [confirmed] : [confirmed, (0, nil)]
    }

    func isNew(_ stated: StatedRate?) -> Bool { stated != nil && stated?.at != taken }

    /// Takes the value of a USDT that a USDT/USD market stated last, if that is new.
    mutating func take(_ stated: StatedRate?) {
        guard isNew(stated), let stated else { return }
        taken = stated.at
        update(beside: stated, at: stated.at)
    }

    /// Records the value of a USDT that a USDT price and a USD price of the same moment imply.
    /// - Parameters:
    ///   - log: The natural logarithm of the USD price divided by the USDT price.
    ///   - venue: The venue of the USD price.
    ///   - stated: What a USDT/USD market stated last.
    mutating func imply(_ log: Double, by venue: String, beside stated: StatedRate?, at boottime: BootTime) {
        implied[venue] = Measurement(log, after: implied[venue], at: boottime)
        update(beside: stated, at: boottime)
    }

    private mutating func update(beside stated: StatedRate?, at boottime: BootTime) {
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

/// The value of USDT that a USDT/USD market has stated.
struct StatedRate: Sendable {
    fileprivate let venue: String
    fileprivate let measurement: PegMonitor.Measurement
    let at: BootTime

    /// - Parameters:
    ///   - value: Dollars for one USDT.
    ///   - last: The statement before it.
    init(_ value: Price, by venue: String, after last: StatedRate?, at boottime: BootTime) {
        let last = last.flatMap { $0.venue == venue ? $0.measurement : nil }
        (self.venue, at) = (venue, boottime)
        measurement = PegMonitor.Measurement(value.logarithm, after: last, at: boottime)
    }
}

extension PegMonitor {
    /// The constants; see `docs/validation.md`. Times are in milliseconds, moves natural logarithms.
    enum Bounds {
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
