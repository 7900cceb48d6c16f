/// The prices of the last hour of one currency, at most one per second: a pure value.
struct RecentPrices: Sendable {
    /// How long a price is kept, in seconds.
    static let span = Candle.Step.hour.seconds

    /// A price in 16 bytes, with or without being optional.
    private struct Entry {
        let digits: Int64
        /// Fewer bits than ``Price/scale``, and more than any price of a market needs.
        let scale: Int16
        var isInDoubt: Bool
    }

    /// The price of each second, at the second modulo ``span``. It is allocated whole, so that memory does not grow for an hour.
    private var entries: [Entry?] = []
    /// The second of the last price.
    private var newest: Int64?

    private func index(_ second: Int64) -> Int {
        Int(second - Candle.Step.hour.start(of: second))
    }

    /// - Parameter second: Unix seconds.
    mutating func add(_ price: Price, isInDoubt: Bool, at second: Int64) {
        if let newest {
            // Seconds without a price, or later ones if the clock was set back.
            let (earlier, later) = (min(newest, second), max(newest, second))
            for other in max(earlier, later - Self.span)..<later { entries[index(other + 1)] = nil }
        } else {
            entries = Array(repeating: nil, count: Int(Self.span))
        }
        newest = second
        if isInDoubt, let present = entries[index(second)], !present.isInDoubt { return }
        entries[index(second)] = Entry(digits: price.digits, scale: Int16(clamping: price.scale), isInDoubt: isInDoubt)
    }

    /// Marks the prices after a second as in doubt.
    /// - Returns: The seconds of those that were not before, from the oldest to the newest.
    mutating func doubt(after second: Int64) -> [Int64] {
        guard let newest, second < newest else { return [] }
        let doubted = (max(second, newest - Self.span) + 1...newest).filter { entries[index($0)]?.isInDoubt == false }
        for second in doubted { entries[index(second)]?.isInDoubt = true }
        return doubted
    }

    /// The prices in a span of time as candles, from the oldest to the newest.
    /// - Parameters:
    ///   - range: Unix seconds.
    ///   - limit: The maximum number of candles; the oldest ones are returned.
    func candles(in range: Range<Int64>, limit: Int) -> [Candle] {
        guard let newest else { return [] }
        var found: [Candle] = []
        for second in range.clamped(to: newest - Self.span + 1..<newest + 1) where found.count < limit {
            guard let entry = entries[index(second)] else { continue }
            let price = Price(entry.digits, scale: Int(entry.scale))
            found.append(Candle(start: second, price, isInDoubt: entry.isInDoubt))
        }
        return found
    }
}
