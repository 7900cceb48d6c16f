/// The source of the simulated prices. Every request to any venue takes the next price.
package struct PriceSeries: Sendable {
    /// Recorded prices that are not valid.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    private enum Kind {
        /// Recorded prices, unchanged; after the end, the last one repeats.
        case replay([String], next: Int)
        /// A random walk in cents.
        case walk(SplitMix64, cents: Int64)
    }

    private var kind: Kind

    /// Replays a column of a CSV file, one row per request.
    /// - Parameters:
    ///   - csv: The file's content, with a header line.
    ///   - column: The header of the column with the prices.
    /// - Throws: ``Failure`` if there are no rows, no such column, or a row without a price in it.
    package init(replaying csv: String, column: String = "close") throws(Failure) {
        var lines = csv.split(whereSeparator: \.isNewline)[...]
        let header = (lines.popFirst() ?? "").split(separator: ",", omittingEmptySubsequences: false)
        guard let index = header.firstIndex(where: { $0 == column }) else {
            throw Failure(description: "the first line has no column '\(column)'")
        }
        var prices: [String] = []
        for (number, line) in lines.enumerated() {
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            guard fields.count > index, Self.isPrice(fields[index]) else {
                throw Failure(description: "line \(number + 2) has no price in column '\(column)'")
            }
            prices.append(String(fields[index]))
        }
        guard !prices.isEmpty else { throw Failure(description: "there are no rows") }
        kind = .replay(prices, next: 0)
    }

    /// A random walk: the same seed gives the same prices.
    /// - Parameter start: The first price, in whole USD.
    package init(walkSeed seed: UInt64, start: Int64 = 68_900) {
        kind = .walk(SplitMix64(seed: seed), cents: start * 100)
    }

    /// The price multiplied by `factor`, rounded to the cent.
    static func price(_ price: String, times factor: Double) -> String {
        text(cents((Double(price) ?? 0) * factor))
    }

    /// The price plus a number of cents.
    static func price(_ price: String, plus cents: Int64) -> String {
        text(max(1, self.cents(Double(price) ?? 0) + self.cents(Double(cents) / 100)))
    }

    /// Dollars in cents, at most 10^15.
    private static func cents(_ dollars: Double) -> Int64 {
        Int64(max(-1e15, min(1e15, (dollars * 100).rounded())))
    }

    static func text(_ cents: Int64) -> String {
        let rest = abs(cents % 100)
        return "\(cents / 100).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// The next price as decimal text.
    mutating func next() -> String {
        switch kind {
        case .replay(let prices, let index):
            kind = .replay(prices, next: min(index + 1, prices.count - 1))
            return prices[index]
        case .walk(var generator, let cents):
            // Steps of up to 0.05 %, and no step in a quarter of the cases: about the volatility of the market.
            let bound = max(1, cents / 2000)
            let step = generator.next() % 4 == 0 ? 0 : Int64(generator.next() % UInt64(2 * bound + 1)) - bound
            let moved = max(100_00, cents + step)
            kind = .walk(generator, cents: moved)
            return Self.text(moved)
        }
    }

    private static func isPrice(_ text: Substring) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count)
            && parts.allSatisfy { part in !part.isEmpty && part.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    }
}

/// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014). Small, and the same on every platform.
struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
