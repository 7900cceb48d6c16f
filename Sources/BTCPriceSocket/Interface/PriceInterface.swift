/// The interface `io.btcpriced.Price`: names and definition.
package enum PriceInterface {
    /// `io.btcpriced.Price`
    package static let name = "io.btcpriced.Price"
    /// `io.btcpriced.Price.GetPrice`
    package static let getPrice = "\(name).GetPrice"
    /// `io.btcpriced.Price.WatchPrice`
    package static let watchPrice = "\(name).WatchPrice"
    /// `io.btcpriced.Price.GetStatus`
    package static let getStatus = "\(name).GetStatus"
    /// `io.btcpriced.Price.ListSources`
    package static let listSources = "\(name).ListSources"
    /// `io.btcpriced.Price.Pause`
    package static let pause = "\(name).Pause"
    /// `io.btcpriced.Price.Resume`
    package static let resume = "\(name).Resume"
    /// `io.btcpriced.Price.Retry`
    package static let retry = "\(name).Retry"
    /// `io.btcpriced.Price.ListCurrencies`
    package static let listCurrencies = "\(name).ListCurrencies"
    /// `io.btcpriced.Price.GetMetrics`
    package static let getMetrics = "\(name).GetMetrics"
    /// A currency is not kept.
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No source has this name.
    package static let unknownSource = "\(name).UnknownSource"
    /// `io.btcpriced.Price.TooOld`
    package static let tooOld = "\(name).TooOld"
    /// Too many calls are pending.
    package static let busy = "\(name).Busy"
    /// `io.btcpriced.Price.FetchFailed`
    package static let fetchFailed = "\(name).FetchFailed"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it: Interface/io.btcpriced.Price.varlink.
    package static let description = String(
        decoding: PackageResources.io_btcpriced_Price_varlink, as: UTF8.self)
}
