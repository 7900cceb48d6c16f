/// How far each market usually is from the others, and which markets have left their place: a pure value.
///
/// All differences are natural logarithms: 0.01 is one percent, and a fall and the rise that undoes it are equally large.
struct BasisTable: Sendable {
    /// How far a market usually is above the others, and when that was learned last, `CLOCK_BOOTTIME` in milliseconds.
    struct Basis: Sendable, Hashable {
        var log: Double
        var at: Int64
    }

    private(set) var known: [Market: Basis] = [:]
    /// Markets that are too far from where they were expected, and since when.
    private var odd: [Market: (log: Double, since: Int64)] = [:]
    /// Markets that were not believed, until they are in line again.
    private(set) var suspects: Set<Market> = []
    /// Markets that were not believed, until another market confirms one of their prices.
    private(set) var unproved: Set<Market> = []

    subscript(market: Market) -> Basis? { known[market] }

    /// Sets the basis of a market.
    mutating func set(_ basis: Basis, of market: Market) { known[market] = basis }

    /// Records that a market's price is shown.
    mutating func accepted(_ market: Market, _ confirmation: Confirmation, log: Double, at boottime: Int64) {
        known[market] = Basis(log: log, at: boottime)
        odd[market] = nil
        suspects.remove(market)
        if confirmation == .confirmed { unproved.remove(market) }
    }

    /// Learns from a market's price that was compared with the shown one.
    /// - Parameters:
    ///   - apart: How far it is from where it was expected.
    ///   - isNear: Whether that is within the agreement.
    mutating func learn(_ market: Market, _ apart: Double, isNear: Bool, at boottime: Int64) {
        odd[market] = nil
        suspects.remove(market)
        let before = known[market]
        let share = isNear ? before.map { Bounds.share(after: boottime - $0.at) } ?? 1 : 1
        known[market] = Basis(log: bounded((before?.log ?? 0) + apart * share), at: boottime)
    }

    /// Records that a market is not where it was expected.
    /// - Returns: Whether it has stayed there for long, at a distance that a market can have. Then that is its place.
    mutating func isOddForLong(_ market: Market, _ apart: Double, at boottime: Int64) -> Bool {
        guard let before = odd[market], abs(before.log - apart) <= Bounds.oddDrift else {
            odd[market] = (apart, boottime)
            return false
        }
        odd[market] = (apart, before.since)
        let long = suspects.contains(market) ? Bounds.suspicionLasts : Bounds.oddLasts
        let basis = (known[market]?.log ?? 0) + apart
        return boottime - before.since >= long && bounded(basis) == basis
    }

    mutating func suspect(_ market: Market) {
        suspects.insert(market)
        unproved.insert(market)
    }

    /// The nearest basis that a market can have.
    func bounded(_ basis: Double) -> Double {
        let others = known.filter { !$0.key.isMedian }
        let middle = others.values.map(\.log).median ?? 0
        return min(max(basis, middle - Bounds.widest), middle + Bounds.widest)
    }

    /// The market that has drifted away from two others that agree, and why that is believed; `nil` if none has.
    /// - Parameter exchange: Returns the exchange whose price a market gives. Each exchange counts once.
    func stray(at boottime: Int64, exchange: (Market) -> String = \.venue) -> (market: Market, reason: String)? {
        let recent = known.filter { !$0.key.isMedian && boottime - $0.value.at <= Bounds.lasts }
        for (market, basis) in recent.sorted(by: { $0.key.venue < $1.key.venue }) {
            let others = Dictionary(
                recent.filter { exchange($0.key) != exchange(market) }.map { (exchange($0.key), $0.value) },
                uniquingKeysWith: { $0.at > $1.at ? $0 : $1 })
            guard others.count >= 2, let middle = others.values.map(\.log).median,
                others.values.count(where: { abs($0.log - middle) <= Bounds.stray / 2 }) >= 2,
                abs(basis.log - middle) > Bounds.stray
            else { continue }
            return (market, "it lies \((basis.log - middle).asPercent) from the other markets")
        }
        return nil
    }

    /// Forgets the basis of a market that has strayed.
    mutating func forget(_ market: Market) {
        suspect(market)
        known[market] = nil
        odd[market] = nil
    }

    /// Forgets all markets but these.
    mutating func keep(only markets: Set<Market>) {
        known = known.filter { markets.contains($0.key) }
        odd = odd.filter { markets.contains($0.key) }
        suspects.formIntersection(markets)
        unproved.formIntersection(markets)
    }
}

extension BasisTable {
    /// The constants; see `docs/validation.md`. Times are in milliseconds.
    enum Bounds {
        /// The maximum distance of a basis from the middle of all bases.
        static let widest = 0.003
        /// A market that is farther than this from the others has strayed.
        static let stray = 0.0028
        /// The share of a difference that a basis adopts, by the time since it was last learned: a basis is a habit, not a moment.
        static func share(after elapsed: Int64) -> Double { min(0.5, max(0, Double(elapsed)) / 300_000) }
        /// How far two markets may have drifted apart since they were last seen side by side.
        static func drift(over age: Int64) -> Double {
            min(0.0002 * (Double(max(0, age)) / 1000).squareRoot(), 0.0015)
        }
        /// The same for a market whose basis is not known.
        static let unknown = 0.003
        /// How long a basis shows where a market is.
        static let lasts = Duration.seconds(300).wholeMilliseconds
        /// How long a market that has moved by itself must stay there before that is its place. The second is for a market that was
        /// contradicted.
        static let oddLasts = Duration.seconds(180).wholeMilliseconds
        static let suspicionLasts = Duration.seconds(900).wholeMilliseconds
        /// How far such a market may drift from one observation to the next.
        static let oddDrift = 0.01
    }
}
