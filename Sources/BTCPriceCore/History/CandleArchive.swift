/// A one-minute candle to store.
package struct KeptCandle: Sendable, Hashable {
    /// What happens if the store already has a candle of this minute.
    package enum Conflict: Sendable, Hashable {
        /// An own candle stays, unless all of it is in doubt: it may have been stored under a wrong time. Any other one is replaced.
        case keepsOwn
        /// An own candle is continued with this one: the daemon was restarted within the minute.
        case continues
        /// The stored candle is replaced: this one is the same, with more that is known.
        case replaces
        /// The stored candle stays: the time of this one is in doubt.
        case yields
        /// This one is an exchange's. One that the daemon has seen a part of, and that is in doubt or covers too little, is completed with it;
        /// any other one stays.
        case completes
    }

    package let currency: Currency
    package let candle: Candle
    package let conflict: Conflict

    package init(_ currency: Currency, _ candle: Candle, _ conflict: Conflict) {
        self.currency = currency
        self.candle = candle
        self.conflict = conflict
    }

    /// What is stored if the store already has a candle of this span; `nil` if that one stays.
    package func merged(with known: Candle, _ step: Candle.Step = .minute) -> Candle? {
        switch conflict {
        case .yields: return nil
        case .replaces: return candle
        case .completes: return known.isPartlyOwn && known.needsCompletion(step) ? candle.beside(known) : nil
        case .keepsOwn where known.origin == Candle.own: return known.isInDoubt ? candle : nil
        case .continues where known.origin == Candle.own:
            // Together they can't cover more than the minute: then the known one is that of another time.
            let seconds = { (candle: Candle) in candle.covered ?? Candle.enough(of: Candle.Step.minute.seconds) }
            guard seconds(known) + seconds(candle) <= Candle.Step.minute.seconds + 2 else {
                return known.isInDoubt ? candle : nil
            }
            var whole = known
            whole.append(candle)
            return whole
        case .keepsOwn, .continues: return candle.needsCompletion(step) ? known.beside(candle) : candle
        }
    }
}

/// Stores candles for years, and episodes beside them.
package protocol CandleArchive: EpisodeArchive {
    /// Stores one-minute candles, from the oldest to the newest. Must not block: the ticks wait for it.
    func keep(_ candles: [KeptCandle])

    /// Called when the present time has become known, or is another one than before. Must not block.
    /// - Parameter second: Unix seconds. Own candles that are later were stored while the clock was ahead.
    func settle(at second: Int64)

    /// Candles of a currency, from the oldest to the newest. The last one may not be complete yet.
    /// - Parameters:
    ///   - step: A minute or longer.
    ///   - range: The starts of the candles, in Unix seconds.
    ///   - limit: The maximum number of candles.
    func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int
    ) async throws(HistoryError) -> [Candle]

    /// Stores an exchange's candles for spans that have none, or too little of the daemon's own.
    func backfill(_ candles: [Candle], of currency: Currency, _ step: Candle.Step) async throws(HistoryError)

    /// Stores minutes from an exchange, if too little of them is known. No longer candle is made from them.
    func insert(_ minutes: [Candle], of currency: Currency) async throws(HistoryError)
}

/// Why the history can't be read or written.
package struct HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file, and what is wrong with it.
    package let description: String

    package init(description: String) {
        self.description = description
    }
}
