/// A method of the daemon's interfaces, for counting calls.
package enum PriceMethod: Int, Sendable, CaseIterable {
    case getPrice, watchPrice, listCurrencies, getStatus, listSources, getMetrics, pause, resume, retry, getHistory,
        getPriceAt, getDay
    /// A method of another interface, an unknown method, or a call with invalid parameters.
    case other

    /// `GetPrice`
    package var name: String {
        let name = "\(self)"
        return self == .other ? name : name.prefix(1).uppercased() + name.dropFirst()
    }
}

/// The number of calls of each method that got a reply.
package struct CallTally: Sendable, Hashable {
    private var counts = [Int64](repeating: 0, count: 2 * PriceMethod.allCases.count)

    package init() {}

    package mutating func add(_ method: PriceMethod, isError: Bool) {
        counts[2 * method.rawValue + (isError ? 1 : 0)] += 1
    }

    package func succeeded(_ method: PriceMethod) -> Int64 { counts[2 * method.rawValue] }

    package func failed(_ method: PriceMethod) -> Int64 { counts[2 * method.rawValue + 1] }
}

/// When a watch gets a reply.
package enum WatchUpdates: String, Sendable, Hashable, CaseIterable {
    /// After each tick.
    case ticks
    /// After each tick, and between the ticks whenever the price has changed.
    case changes
}
