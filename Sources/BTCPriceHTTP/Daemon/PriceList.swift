import BTCPriceAPI
import BTCPriceCore

/// The prices in all currencies at one moment, and the bodies that were made from them.
struct PriceList: Sendable {
    let currencies: [CurrencyMessage]
    /// When the daemon sent them.
    let time: ObservationTime
    let bodies = KeptBodies()

    init(_ currencies: [CurrencyMessage], at time: ObservationTime) {
        self.currencies = currencies
        self.time = time
    }
}
