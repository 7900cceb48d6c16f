/// A candle of a minute to be kept.
package struct KeptCandle: Sendable, Hashable {
    /// What happens if there is a candle of this minute already.
    package enum Conflict: Sendable, Hashable {
        /// An exchange's is replaced, an own one stays.
        case keepsOwn
        /// An own one goes on with this: the daemon was restarted within the minute.
        case continues
        /// It is replaced: the clock was set back, and this is the newer one.
        case replaces
        /// It stays: this is an exchange's.
        case yields
    }

    package let currency: Currency
    package let candle: Candle
    package let conflict: Conflict

    package init(_ currency: Currency, _ candle: Candle, _ conflict: Conflict) {
        self.currency = currency
        self.candle = candle
        self.conflict = conflict
    }
}

/// Keeps candles.
package protocol CandleStore: Sendable {
    /// Takes candles of minutes, from the oldest to the newest. Must not block: the ticks wait for it.
    func keep(_ candles: [KeptCandle])
}

/// Keeps candles for years.
package protocol CandleArchive: CandleStore {
    /// Candles of a currency, from the oldest to the newest. The last one may not be complete yet.
    /// - Parameters:
    ///   - step: A minute or longer.
    ///   - range: Of their starts, Unix seconds.
    ///   - limit: At most so many.
    func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int
    ) async throws(HistoryError) -> [Candle]

    /// Keeps an exchange's candles, for spans that have none.
    func backfill(_ candles: [Candle], of currency: Currency, _ step: Candle.Step) async throws(HistoryError)

    /// Keeps one minute of an exchange, if it is not known. No longer candle is made of it.
    func insert(_ minute: Candle, of currency: Currency) async throws(HistoryError)
}

/// Why the history can't be read or written.
package struct HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file, and what is wrong with it.
    package let description: String

    package init(description: String) {
        self.description = description
    }
}
