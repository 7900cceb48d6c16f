import BTCPriceNetworking
import Configuration

/// A key of an earlier version, or a value of a key. It is a warning and not an error: after an upgrade, an old configuration still starts.
struct GoneSetting {
    let key: String
    /// The value that has gone, and what it means now; `nil` if the key has gone, and is ignored.
    let values: (gone: RawValue, now: RawValue)?
    /// What to write instead.
    let advice: String

    static let all = ofValues + ofClients

    private static let ofValues = [
        GoneSetting(
            key: "currency.usdt", values: (.text("refuse"), .text("warn")),
            advice: "to use no price in USDT, leave binance out of sources"),
        GoneSetting(
            key: "streams", values: (.text("always"), .text("auto")),
            advice: "each tick requests a price, and streams are open while a client watches changes"),
    ]

    private static let ofClients = [
        ("connections-per-user", "one user can have three quarters of clients.connections"),
        ("message-bytes", "a call can have 8 KiB"),
        ("queued-bytes", "clients.queued-mib is the limit of all clients together"),
        ("pending-calls", "4096 calls can wait for a reply"),
        ("message-timeout-s", "clients.timeout-s is the same"),
        ("write-timeout-s", "it is twice clients.timeout-s"),
        ("idle-timeout-s", "it is twenty times clients.timeout-s"),
    ].map { GoneSetting(key: "clients.\($0)", values: nil, advice: $1) }

    /// `currency.usdt = "refuse" has gone, and now means "warn"; to use no price in USDT, leave binance out of sources`
    var warning: String {
        guard let values else { return "\(key) has gone, and is ignored; \(advice)" }
        return "\(key) = \(values.gone) has gone, and now means \(values.now); \(advice)"
    }
}

extension SettingKey {
    /// Every setting, and the keys that have gone, whose values are not read.
    static let known =
        all
        + GoneSetting.all.filter { $0.values == nil }.map {
            SettingKey(name: $0.key, kind: .flag, standard: nil, text: "")
        }
}
