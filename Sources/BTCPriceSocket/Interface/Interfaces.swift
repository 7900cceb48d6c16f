/// The interface `io.btcpriced.Price`: names and definition.
package enum PriceInterface {
    package static let name = "io.btcpriced.Price"
    package static let getPrice = "\(name).GetPrice"
    package static let watchPrice = "\(name).WatchPrice"
    package static let getStatus = "\(name).GetStatus"
    package static let listSources = "\(name).ListSources"
    package static let pause = "\(name).Pause"
    package static let resume = "\(name).Resume"
    package static let retry = "\(name).Retry"
    package static let setSource = "\(name).SetSource"
    package static let listCurrencies = "\(name).ListCurrencies"
    package static let getMetrics = "\(name).GetMetrics"
    /// A currency is not kept.
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No source has this name.
    package static let unknownSource = "\(name).UnknownSource"
    package static let tooOld = "\(name).TooOld"
    /// Too many calls are pending.
    package static let busy = "\(name).Busy"
    /// A limit on connections was exceeded. The daemon sends it before the first call, and closes the connection.
    package static let tooManyConnections = "\(name).TooManyConnections"
    package static let fetchFailed = "\(name).FetchFailed"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it: Interface/io.btcpriced.Price.varlink.
    package static let description = String(
        decoding: PackageResources.io_btcpriced_Price_varlink, as: UTF8.self)
}

/// The interface `io.btcpriced.History`: names and definition.
package enum HistoryInterface {
    package static let name = "io.btcpriced.History"
    package static let getHistory = "\(name).GetHistory"
    package static let getPriceAt = "\(name).GetPriceAt"
    package static let getPricesAt = "\(name).GetPricesAt"
    package static let getDay = "\(name).GetDay"
    package static let getEvents = "\(name).GetEvents"
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No history is kept.
    package static let disabled = "\(name).Disabled"
    /// The history can't be read.
    package static let unavailable = "\(name).Unavailable"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it: Interface/io.btcpriced.History.varlink.
    package static let description = String(
        decoding: PackageResources.io_btcpriced_History_varlink, as: UTF8.self)
}

/// A method of the daemon's interfaces, for counting calls.
package enum PriceMethod: Int, Sendable, CaseIterable {
    case getPrice, watchPrice, listCurrencies, getStatus, listSources, getMetrics, pause, resume, retry, setSource,
        getHistory, getPriceAt, getPricesAt, getDay, getEvents
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
