import Glibc

/// One price seen on one market.
package struct MarketObservation: Sendable, Hashable {
    /// How a price reaches this machine.
    package enum Way: String, Sendable, Hashable, CaseIterable {
        /// In the response to a request.
        case poll
        /// In a message of a stream.
        case stream
        /// From another daemon.
        case peer
    }

    package let market: Market
    /// The exact price.
    package let value: Price
    /// When it arrived, on both clocks.
    package let arrival: ObservationTime
    /// Its position in the market's history; `nil` if the venue sent none that can be trusted.
    package let position: FeedPosition?
    /// Its age by the venue's own time when it arrived, milliseconds, not below zero; `nil` if the venue sent no time.
    package let age: Int64?
    package let way: Way
    /// The minimum time between two requests that the source's limits allow; zero for a feed that pushes.
    package let pace: Duration
    /// The natural logarithm of ``value``, for comparisons.
    let log: Double

    package init(
        _ market: Market, _ value: Price, arrival: ObservationTime, position: FeedPosition? = nil, age: Int64? = nil,
        way: Way = .poll, pace: Duration = .zero
    ) {
        self.market = market
        self.value = value
        self.arrival = arrival
        self.position = position
        self.age = age
        self.way = way
        self.pace = pace
        log = value.logarithm
    }

    /// `CLOCK_BOOTTIME` of the arrival, milliseconds.
    var at: Int64 { arrival.boottime }
}

extension Price {
    /// The natural logarithm; minus infinity for a number that is not above zero.
    var logarithm: Double {
        let value = double
        return value > 0 ? Glibc.log(value) : -.infinity
    }
}

extension [Double] {
    /// The middle number by size, or the mean of the two in the middle; `nil` if there are none.
    var median: Double? {
        guard !isEmpty else { return nil }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }
}
