import BTCPriceCore
package import Varlink

/// The interface's `Currency`: a currency that the price is kept in.
package struct CurrencyMessage: Sendable, Hashable {
    /// ISO 4217
    package var currency: String
    package var price: StateMessage
    /// The time between two ticks, milliseconds.
    package var interval: Int64
    /// The sources in their order.
    package var sources: [String]

    package init(currency: String, price: StateMessage, interval: Int64, sources: [String]) {
        self.currency = currency
        self.price = price
        self.interval = interval
        self.sources = sources
    }

    /// The message as JSON, every field of the definition in its order.
    package var json: JSONObject {
        [
            "currency": .string(currency), "state": .object(price.json), "intervalMs": .integer(interval),
            "sources": .array(sources.map { .string($0) }),
        ]
    }

    /// Reads the message.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        self.init(
            currency: try json.required("currency", \.stringValue),
            price: try StateMessage(json: try json.required("state", \.objectValue)),
            interval: try json.required("intervalMs", \.intervalValue), sources: try json.texts("sources"))
    }
}
