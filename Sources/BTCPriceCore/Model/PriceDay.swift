/// The movement of the price in the last 24 hours, by the minute.
package struct PriceDay: Sendable, Hashable {
    /// When the first of its prices was seen: 24 hours ago, or later if less is known.
    package var since: Timestamp
    package var open: Price
    package var high: Price
    package var low: Price
    package var close: Price
    /// Whether minutes that this daemon has not seen are filled with candles from an exchange.
    package var isBackfilled: Bool

    package init(since: Timestamp, open: Price, high: Price, low: Price, close: Price, isBackfilled: Bool = false) {
        self.since = since
        self.open = open
        self.high = high
        self.low = low
        self.close = close
        self.isBackfilled = isBackfilled
    }

    package var change: Price { close - open }

    /// The same in percent of the first price, to two places; 0 without one.
    package var changePercent: Price { open == .zero ? .zero : (change * 100).divided(by: open, places: 2) }
}
