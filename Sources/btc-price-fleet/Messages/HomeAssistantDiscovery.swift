import BTCPriceCore
import BTCPriceSocket

/// What Home Assistant needs to find and read the price (home-assistant.io, MQTT integration, discovery of a device).
enum HomeAssistantDiscovery {
    /// The minimum time from the last value to one with this confirmation, ms: Home Assistant must not record a brief `unconfirmed`.
    static func interval(of confirmation: Confirmation?) -> Int64 { confirmation == .unconfirmed ? 60_000 : 10_000 }
    /// Home Assistant publishes `online` on this topic when it has started. It then knows only the sensors that the broker has kept.
    static let birth = "homeassistant/status"

    /// After this time without a value the sensor is unavailable, seconds.
    /// - Parameter interval: The interval of the price, milliseconds.
    private static func expiry(_ interval: Int64) -> Int64 { max(120, FollowedQuote.silentIntervals * interval / 1000) }

    /// The topic of device discovery. The publisher is a separate level, so that a broker can bind it to the publisher's certificate.
    static func topic(of publisher: String) -> String { "homeassistant/device/\(publisher)/btcpriced/config" }

    /// The description of the device and of a sensor for each currency.
    /// - Parameters:
    ///   - currencies: With the intervals of their prices, milliseconds.
    ///   - dropped: Those whose sensors are removed.
    static func payload(
        publisher: String, currencies: [(code: String, interval: Int64)], dropped: Set<String>
    ) -> [UInt8] {
        let id = "btcpriced_\(publisher)"
        var sensors = JSONObject()
        // A component without anything but its platform is removed.
        for currency in dropped.sorted() {
            sensors["price_\(currency.lowercased())"] = .object(["p": .string("sensor")])
        }
        for (currency, interval) in currencies {
            let topic = JSON.string(FleetTopic.homeAssistant(publisher: publisher, currency: currency).text)
            // There is no device class, because `monetary` does not allow measurements.
            sensors["price_\(currency.lowercased())"] = .object([
                "p": .string("sensor"), "name": .string("BTC/\(currency)"),
                "uniq_id": .string("\(id)_\(currency.lowercased())"), "stat_t": topic,
                "val_tpl": .string("{{ value_json.value }}"), "json_attr_t": topic, "unit_of_meas": .string(currency),
                "stat_cla": .string("measurement"), "exp_aft": .integer(expiry(interval)), "sug_dsp_prc": .integer(2),
                "ic": .string("mdi:bitcoin"),
            ])
        }
        let software: JSON = .object(["name": .string("btc-priced"), "sw": .string(Product.version)])
        let object: JSONObject = [
            "dev": .object([
                "ids": .array([.string(id)]), "name": .string("btc-priced \(publisher)"),
                "sw": .string(Product.version),
            ]), "o": software,
            "avty": .array([
                .object([
                    "t": .string(FleetTopic.status(publisher: publisher).text),
                    "val_tpl": .string("{{ value_json.state }}"),
                ])
            ]), "cmps": .object(sensors),
        ]
        return Array(JSON.object(object).text.utf8)
    }
}
