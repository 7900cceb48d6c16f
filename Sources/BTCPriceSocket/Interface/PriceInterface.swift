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
    package static let listCurrencies = "\(name).ListCurrencies"
    package static let getMetrics = "\(name).GetMetrics"
    /// A currency is not kept.
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No source has this name.
    package static let unknownSource = "\(name).UnknownSource"
    package static let tooOld = "\(name).TooOld"
    /// Too many calls are pending.
    package static let busy = "\(name).Busy"
    package static let fetchFailed = "\(name).FetchFailed"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it: Interface/io.btcpriced.Price.varlink.
    package static let description = String(
        decoding: PackageResources.io_btcpriced_Price_varlink, as: UTF8.self)
}
