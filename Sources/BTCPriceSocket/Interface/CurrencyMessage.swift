/// The interface's `Currency`: a currency that the price is kept in.
package struct CurrencyMessage: Sendable, Hashable {
    /// ISO 4217
    package var currency: String
    package var price: StateMessage
    /// The time between two ticks, milliseconds.
    package var interval: Int64
    package var sources: [String]

    package init(currency: String, price: StateMessage, interval: Int64, sources: [String]) {
        self.currency = currency
        self.price = price
        self.interval = interval
        self.sources = sources
    }
}

extension CurrencyMessage: JSONMessage {
    package static var blank: CurrencyMessage {
        CurrencyMessage(currency: "", price: .blank, interval: 0, sources: [])
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("currency", &currency, .text)
        try fields.required("state", &price, .message)
        try fields.required("intervalMs", &interval, .interval)
        try fields.required("sources", &sources, .texts)
    }
}
