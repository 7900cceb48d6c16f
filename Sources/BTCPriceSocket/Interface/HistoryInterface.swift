/// The interface `io.btcpriced.History`: names and definition.
package enum HistoryInterface {
    package static let name = "io.btcpriced.History"
    package static let getHistory = "\(name).GetHistory"
    package static let getPriceAt = "\(name).GetPriceAt"
    package static let getDay = "\(name).GetDay"
    package static let unknownCurrency = "\(name).UnknownCurrency"
    /// No history is kept.
    package static let disabled = "\(name).Disabled"
    /// The history can't be read.
    package static let unavailable = "\(name).Unavailable"

    /// The interface's definition, as `org.varlink.service.GetInterfaceDescription` returns it: Interface/io.btcpriced.History.varlink.
    package static let description = String(
        decoding: PackageResources.io_btcpriced_History_varlink, as: UTF8.self)
}
