/// The prices of the last hour of one currency, at most one per second: a pure value.
struct RecentPrices: Sendable {
    /// How long a price is kept, in seconds.
    static let span: Int64 = 3600

    private struct Entry {
        let second: Int64
        let price: Price
        let isInDoubt: Bool
    }

    /// From the oldest to the newest; some of them may be outdated.
    private var entries: [Entry] = []

    /// - Parameter second: Unix seconds.
    mutating func add(_ price: Price, isInDoubt: Bool, at second: Int64) {
        // There are later entries if the clock was set back.
        while let last = entries.last, last.second > second { entries.removeLast() }
        if let last = entries.last, last.second == second {
            if isInDoubt, !last.isInDoubt { return }
            entries.removeLast()
        }
        entries.append(Entry(second: second, price: price, isInDoubt: isInDoubt))
        // Done rarely, because it moves all other entries.
        let outdated = entries.prefix { $0.second <= second - Self.span }.count
        if outdated >= 600 { entries.removeFirst(outdated) }
    }

    /// The prices in a span of time as candles, from the oldest to the newest.
    /// - Parameters:
    ///   - range: Unix seconds.
    ///   - limit: The maximum number of candles; the oldest ones are returned.
    func candles(in range: Range<Int64>, limit: Int) -> [Candle] {
        guard let newest = entries.last?.second else { return [] }
        let first = max(range.lowerBound, newest - Self.span + 1)
        return entries.drop { $0.second < first }.prefix { $0.second < range.upperBound }.prefix(limit)
            .map { Candle(start: $0.second, $0.price, isInDoubt: $0.isInDoubt) }
    }
}
