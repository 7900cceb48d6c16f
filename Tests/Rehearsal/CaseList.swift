import BTCPriceCore

extension Scene {
    /// A case in which only one venue's price is multiplied by a factor.
    private static func lie(
        _ name: String, _ what: String, by source: String = "binance",
        sources: [String] = four,
        factor: @escaping @Sendable (Double) -> Double
    ) -> Scene {
        incident(
            day: name, what: what, expected: "at most 3 s wrong", sources: sources, seconds: 960, market: calm,
            script: { ask in
                ask.source == source && factor(ask.seconds) != 1 ? .price(ask.fair * factor(ask.seconds)) : nil
            },
            check: isSoonRight)
    }

    /// The condition of every case with a lie.
    private static let isSoonRight: @Sendable (Shown) -> String? = { shown in
        expect((shown.wrong.count <= 3, "\(shown.wrong.count) s wrong and fresh"))
    }

    private static func answers(
        _ name: String, _ what: String, _ expected: String, sources: [String], seconds: Int = 240,
        check: @escaping @Sendable (Shown) -> String?,
        script: @escaping @Sendable (Ask) -> VenueAnswer? = { _ in nil }
    ) -> Scene {
        incident(
            day: name, what: what, expected: expected, sources: sources, seconds: seconds, market: calm,
            script: script, check: check)
    }

    /// Cases that were not specified when they were found: a wrong price shown as fresh, or a correct price withheld.
    static let cases: [Scene] =
        [
            lie("1", "the primary falls by 30 % within 60 s and stays", factor: ramp(to: 0.7, over: 60, from: 300)),
            lie(
                "1", "Coinbase, the primary here, falls by 15 % within 60 s and stays", by: "coinbase",
                sources: ["coinbase", "bitstamp", "kraken", "binance"], factor: ramp(to: 0.85, over: 60, from: 300)),
            lie("1", "the primary falls by 5 % within 60 s and stays", factor: ramp(to: 0.95, over: 60, from: 300)),
            lie("1", "the primary falls by 0.8 % a second down to -45 %", factor: ramp(to: 0.55, over: 56, from: 300)),
            lie("1", "the primary rises by 5 % within ten minutes", factor: ramp(to: 1.05, over: 600, from: 300)),
            answers(
                "2", "three hours off, then the primary is 17 % wrong and stays", "at most 3 s wrong",
                sources: four, seconds: 11_340, check: isSoonRight,
                script: { ask in
                    if (300..<11_100).contains(ask.seconds) { return .fails(.unreachable("no network")) }
                    return ask.source == "binance" && ask.seconds >= 11_100 ? .price(ask.fair * 0.83) : nil
                }),
            answers(
                "3", "the primary dates its price an hour back, and it is 1.3 % off", "never shown",
                sources: ["coinbase", "bitstamp", "kraken"], check: isSoonRight,
                script: { ask in
                    ask.source == "coinbase" ? .dated(ask.fair * 0.987) { $0 - 3_600_000 } : nil
                }),
            answers(
                "3", "the same a day back", "never shown", sources: ["coinbase", "bitstamp", "kraken"],
                check: isSoonRight,
                script: { ask in
                    ask.source == "coinbase" ? .dated(ask.fair * 0.987) { $0 - 86_400_000 } : nil
                }),
            incident(
                day: "4", what: "two fallbacks frozen alike, then a real fall of 3 %",
                expected: "the fall comes through",
                sources: ["binance", "coinbase", "bitstamp"], seconds: 420,
                market: { $0 >= 300 ? 66_833 : calm($0) },
                script: { ask in
                    guard ask.source != "binance", ask.seconds >= 285 else { return nil }
                    return .dated(68_900) { $0 - Int64((ask.seconds - 285) * 1000) }
                }, check: isSoonRight),
            answers(
                "5", "Binance refuses at the first start, CryptoCompare answers", "shown in the tick it arrives in",
                sources: ["binance", "cryptocompare"],
                check: { shown in
                    expect(
                        (shown.ticks.first?.state.freshness == .fresh, "not in the first tick"),
                        (shown.ticks.first?.state.confirmation == .unconfirmed, "not called unconfirmed"))
                }, script: { ask in ask.source == "binance" ? .fails(.refused("HTTP 451")) : nil }),
            answers(
                "5", "CryptoCompare alone", "shown in the tick it arrives in", sources: ["cryptocompare"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) }),
            answers(
                "5", "five sources, of which one answers", "shown in the tick it arrives in",
                sources: ["binance", "cryptocompare", "coinbase", "bitstamp", "kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { ask in ask.source == "bitstamp" ? nil : .fails(.unavailable("HTTP 503")) }),
            answers(
                "6", "Kraken alone, once in two seconds", "as fresh as its limit allows", sources: ["kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) }),
            answers(
                "6", "CryptoCompare and Kraken", "as fresh as their limits allow",
                sources: ["cryptocompare", "kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) }),
            answers(
                "7", "three seconds of 403 from all sources", "back after a minute",
                sources: four, seconds: 1200,
                check: { shown in
                    expect((shown.stale.count <= 66, "\(shown.stale.count) stale"), (shown.wrong.isEmpty, "wrong"))
                },
                script: { ask in
                    (300..<303).contains(ask.seconds) ? .fails(.refused("HTTP 403")) : nil
                }),
            answers(
                "8", "one response dated 55 s ahead", "the next ones are not old",
                sources: ["coinbase"], check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { ask in ask.number == 60 ? .dated(ask.fair) { $0 + 55_000 } : nil }),
        ] + lagging

    /// A primary that lags by 30 s, or stands still except for noise, while the market falls: 20 runs of each, with different phases.
    private static let lagging: [Scene] = (0..<80).map { run in
        let (phase, isFrozen, isSlow) = (run % 20, run / 20 % 2 == 1, run / 40 == 1)
        // -5 % a minute, or -0.3 % a second.
        let slope = isSlow ? 0.000855 : 0.003
        let start = 300 + Double(phase) * 0.73
        let market: @Sendable (Double) -> Double = { 68_900 * (1 - slope * min(60, max(0, $0 - start))) }
        let limit = isSlow ? 1 : 3
        return incident(
            day: "9",
            what:
                "the primary \(isFrozen ? "stands still" : "lags") at \(isSlow ? "-5 % a minute" : "-0.3 % a second"), phase \(phase)",
            expected: "at most \(limit) s wrong", seconds: 420, market: market,
            script: { ask in
                guard ask.source == "binance", ask.seconds >= start else { return nil }
                let noise = 1 + 0.0001 * ((ask.seconds * 7.3).truncatingRemainder(dividingBy: 2) - 1)
                return .price(market(isFrozen ? start : ask.seconds - 30) * noise)
            },
            check: { shown in expect((shown.wrong.count <= limit, "\(shown.wrong.count) s wrong and fresh")) })
    }
}
