/// Which price is shown if no two markets agree: a real crash moves the markets apart, and must still come through.
enum ScatterRule {
    /// The price nearest to the median of all. Other prices of the same moment count, too: for example, that of an exchange whose limits
    /// allow no request now.
    /// - Parameter prices: The prices that can be shown; at least one.
    static func nearestToMedian(_ prices: [MarketObservation], _ book: ObservationBook) -> Market {
        let reference = book.level.log ?? book.reference?.log
        let others = book.newest.values.filter { prices[0].at - $0.at <= ConfirmationRule.sameMoment }
        let all = (prices + others.sorted { $0.at > $1.at }).oneOf(\.exchange)
        return nearest(to: all.map { book.place(of: $0, near: reference).log }.median ?? 0, of: prices, book)
    }

    /// The price nearest to a place in the common frame.
    /// - Parameter prices: At least one.
    static func nearest(to log: Double, of prices: [MarketObservation], _ book: ObservationBook) -> Market {
        let distances = prices.map { abs(book.place(of: $0, near: log).log - log) }
        return prices[distances.indices.min { distances[$0] < distances[$1] } ?? 0].market
    }
}
