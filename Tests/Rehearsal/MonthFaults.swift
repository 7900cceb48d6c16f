import BTCPriceCore
import TestSupport

/// The faults of the virtual month: the rows of the list of incidents, each with its own size, length and venue.
enum MonthFault: String, CaseIterable {
    case badPrint, wick, alternation, outlyingTrade, selloff, crash, loneCrash, freeze, depeg, absurdValue, staleNode,
        microseconds
    /// The faults of the second lane, which may coincide with any of the first.
    case outage, refusal, hang, resets, regionalOutage

    static let judged: [MonthFault] = allCases.filter { !lesser.contains($0) }
    static let lesser: [MonthFault] = [.outage, .refusal, .hang, .resets, .regionalOutage]

    /// The duration in seconds.
    var length: ClosedRange<Int> {
        switch self {
        case .badPrint: 1...1
        case .wick: 3...60
        case .alternation, .crash, .absurdValue: 60...180
        case .outlyingTrade: 60...120
        case .selloff: 300...600
        case .loneCrash: 300...400
        case .freeze: 300...9000
        case .depeg: 10_800...21_600
        case .staleNode, .microseconds: 300...1800
        case .outage, .regionalOutage: 300...10_800
        case .refusal: 600...20_000
        case .hang: 30...1800
        case .resets: 5...60
        }
    }
}

/// A fault with its drawn parameters.
struct DrawnFault: Sendable {
    let kind: MonthFault
    let source: String
    let start: Int
    let end: Int
    /// From 0 to 1.
    let size: Double
    let isUp: Bool

    func holds(at second: Int) -> Bool { second >= start && second < end }

    /// The progress of the fault, from 0 to 1.
    func share(at second: Double) -> Double { min(1, max(0, (second - Double(start)) / Double(end - start))) }

    /// The effect on the whole market, as a factor. The effect of a crash stays.
    func market(at second: Double) -> Double {
        guard second >= Double(start) else { return 1 }
        let direction = isUp ? 1.0 : -1.0
        switch kind {
        case .crash:
            // In four shocks of up to 1.8 %, as order books run empty.
            let shocks = min(4, Int((second - Double(start)) / 12) + 1)
            return 1 + direction * (0.01 + 0.008 * size) * Double(shocks)
        // One gap, 120 s after the other sources have failed.
        case .loneCrash: return second >= Double(start) + 120.5 ? 1 + direction * (0.02 + 0.05 * size) : 1
        default: return 1
        }
    }

    /// The value of one USDT during the fault.
    func peg(at second: Double) -> Double {
        guard kind == .depeg else { return 1 }
        let deepest = isUp ? 0.02 * size : -0.15 * size
        // It falls in the first third and recovers in the last.
        let share = share(at: second)
        return 1 + deepest * max(0, min(1, min(share, 1 - share) * 3))
    }

    /// A venue's response during the fault; `nil` for the fair price.
    func answer(of name: String, at second: Int, ask: Int, fair: Double) -> VenueAnswer? {
        guard holds(at: second) else { return nil }
        if kind == .loneCrash { return name == source ? nil : .fails(.unavailable("HTTP 503")) }
        if kind == .regionalOutage, ["coinbase", "kraken"].contains(name) { return .fails(.unavailable("HTTP 520")) }
        // One venue does not respond during a crash.
        if kind == .crash, name == "bitstamp" { return .hangs }
        guard name == source else { return nil }
        switch kind {
        case .badPrint: return .price(fair * (isUp ? 1.013 + size : 0.987 - 0.9 * size))
        case .wick: return .price(fair * (isUp ? 1.1 + size : 0.9 - 0.8 * size))
        case .alternation: return .price(ask % 2 == 0 ? fair * (0.98 - 0.01 * size) : fair * (1.02 + 0.01 * size))
        case .outlyingTrade: return .price(fair * (0.5 + 0.2 * size))
        case .selloff:
            var factor = 1.0
            for _ in 0..<((second - start) / 9) where factor > 0.14 { factor *= 0.97 }
            return second - start < 9 ? nil : .price(fair * factor)
        case .absurdValue: return .price([0, -1, 850_867_136_053.72, fair * 10, fair / 10][Int(size * 4.99)])
        case .outage: return .fails(.unavailable("HTTP 503"))
        case .refusal: return .fails(.refused("HTTP 451"))
        case .hang: return .hangs
        case .resets: return .fails(.unreachable("connection reset"))
        case .freeze, .staleNode, .microseconds, .crash, .loneCrash, .depeg, .regionalOutage: return nil
        }
    }

    /// Draws faults for a time of `seconds`, one after the other, about `apart` seconds apart.
    static func draw(
        _ kinds: [MonthFault], over seconds: Int, apart: Int, sources: [String], _ generator: inout SeededGenerator
    ) -> [DrawnFault] {
        var faults: [DrawnFault] = []
        var second = apart
        while second < seconds - 30_000 {
            let kind = kinds[Int.random(in: 0..<kinds.count, using: &generator)]
            let source =
                switch kind {
                // The source whose responses contain no time.
                case .freeze: "binance"
                case .loneCrash: sources[0]
                // In half of the cases the primary, where a fault matters most.
                default:
                    Bool.random(using: &generator)
                        ? sources[0] : sources[Int.random(in: 0..<sources.count, using: &generator)]
                }
            let fault = DrawnFault(
                kind: kind, source: source, start: second,
                end: second + Int.random(in: kind.length, using: &generator),
                size: Double.random(in: 0...1, using: &generator), isUp: Bool.random(using: &generator))
            faults.append(fault)
            second = fault.end + Int.random(in: apart / 2...apart * 3 / 2, using: &generator)
        }
        return faults
    }
}

/// Finds the fault at a second.
struct FaultLane: Sendable {
    let faults: [DrawnFault]
    private let byHour: [[Int]]

    init(_ faults: [DrawnFault], over seconds: Int) {
        self.faults = faults
        var byHour = [[Int]](repeating: [], count: seconds / 3600 + 2)
        for (index, fault) in faults.enumerated() {
            for hour in fault.start / 3600...fault.end / 3600 { byHour[hour].append(index) }
        }
        self.byHour = byHour
    }

    func holding(at second: Int) -> DrawnFault? {
        byHour[max(0, second) / 3600].first { faults[$0].holds(at: second) }.map { faults[$0] }
    }
}
