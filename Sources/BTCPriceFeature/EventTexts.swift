package import BTCPriceCore

extension PriceTexts {
    /// What went on: `binance (USD) was outvoted, by up to 3.02 %`, `kraken (EUR) gave no price, 4 times`.
    /// - Parameters:
    ///   - kind: ``Episode/Kind``, or one that a newer daemon has.
    ///   - worst: In percent.
    ///   - difference: Milliseconds.
    package static func event(
        _ kind: String, currency: String?, source: String?, worst: Price?, difference: Int64?, count: Int64
    ) -> String {
        let money = currency.map { " in \($0)" } ?? ""
        let distance = worst.map { ", by up to \($0.grouped(places: 2)) %" } ?? ""
        let name = [source, currency.map { "(\($0))" }].compactMap(\.self).joined(separator: " ")
        let text =
            switch Episode.Kind(rawValue: kind) {
            case .outage: "no source gave a price\(money)"
            case .doubt: "the price\(money) was in doubt"
            case .jump: "the price\(money) jumped\(distance)"
            case .peg: "USDT was off its peg\(distance)"
            case .outvoted: "\(name) was outvoted\(distance)"
            case .failed: "\(name) gave no price"
            case .limited: "\(name) demanded a pause: a limit or a ban"
            case .refused: "\(name) refused the requests"
            case .paused: "the updates were paused"
            case .clock:
                "this machine's clock was wrong\(difference.map { ", by \(Duration.milliseconds($0).wholeUnits)" } ?? "")"
            case .reload: "the configuration was read again"
            case nil: [kind, name].filter { !$0.isEmpty }.joined(separator: " ")
            }
        return count > 1 ? "\(text), \(count) times" : text
    }
}

extension Duration {
    /// `95 s`, `12 min`, `3 h` or `10 d`, rounded down.
    package var wholeUnits: String {
        switch components.seconds {
        case let seconds where seconds < 120: "\(seconds) s"
        case let seconds where seconds < 7200: "\(seconds / 60) min"
        case let seconds where seconds < 172_800: "\(seconds / 3600) h"
        case let seconds: "\(seconds / 86_400) d"
        }
    }
}
