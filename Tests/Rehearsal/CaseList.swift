import BTCPriceCore

/// A factor that falls from 1 to `share` within `length` seconds, and stays there.
private func slide(to share: Double, over length: Double, from start: Double = 300) -> @Sendable (Double) -> Double {
    { seconds in 1 - (1 - share) * min(1, max(0, (seconds - start) / length)) }
}

extension Incident {
    private static let market: @Sendable (Double) -> Double = { 68_900 + 20 * ($0 / 90).remainder(dividingBy: 1) }

    /// A case in which only one venue's price is multiplied by a factor.
    private static func lie(
        _ name: String, _ what: String, by source: String = "binance",
        sources: [String] = ["binance", "coinbase", "bitstamp", "kraken"],
        factor: @escaping @Sendable (Double) -> Double
    ) -> Incident {
        Incident(
            day: name, what: what, expected: "at most 3 s wrong", sources: sources, seconds: 960, market: market,
            script: { name, seconds, _, fair in
                name == source && factor(seconds) != 1 ? .price(fair * factor(seconds)) : nil
            },
            check: isSoonRight)
    }

    /// The condition of every case with a lie.
    private static let isSoonRight: @Sendable (Shown) -> String? = { shown in
        expect((shown.wrong <= 3, "\(shown.wrong) s wrong and fresh"))
    }

    private static func answers(
        _ name: String, _ what: String, _ expected: String, sources: [String], seconds: Int = 240,
        check: @escaping @Sendable (Shown) -> String?,
        script: @escaping @Sendable (String, Double, Int, Double) -> VenueAnswer?
    ) -> Incident {
        Incident(
            day: name, what: what, expected: expected, sources: sources, seconds: seconds, market: market,
            script: script,
            check: check)
    }

    /// Cases that were not specified when they were found: a wrong price shown as fresh, or a correct price withheld.
    static let cases: [Incident] =
        [
            lie("1", "the primary falls by 30 % within 60 s and stays", factor: slide(to: 0.7, over: 60)),
            lie(
                "1", "Coinbase, the primary here, falls by 15 % within 60 s and stays", by: "coinbase",
                sources: ["coinbase", "bitstamp", "kraken", "binance"], factor: slide(to: 0.85, over: 60)),
            lie("1", "the primary falls by 5 % within 60 s and stays", factor: slide(to: 0.95, over: 60)),
            lie("1", "the primary falls by 0.8 % a second down to -45 %", factor: slide(to: 0.55, over: 56)),
            lie("1", "the primary rises by 5 % within ten minutes", factor: slide(to: 1.05, over: 600)),
            answers(
                "2", "three hours off, then the primary is 17 % wrong and stays", "at most 3 s wrong",
                sources: ["binance", "coinbase", "bitstamp", "kraken"], seconds: 11_340, check: isSoonRight,
                script: { source, seconds, _, fair in
                    if (300..<11_100).contains(seconds) { return .fails(.unreachable("no network")) }
                    return source == "binance" && seconds >= 11_100 ? .price(fair * 0.83) : nil
                }),
            answers(
                "3", "the primary dates its price an hour back, and it is 1.3 % off", "never shown",
                sources: ["coinbase", "bitstamp", "kraken"], check: isSoonRight,
                script: { source, _, _, fair in
                    source == "coinbase" ? .dated(fair * 0.987) { $0 - 3_600_000 } : nil
                }),
            answers(
                "3", "the same a day back", "never shown", sources: ["coinbase", "bitstamp", "kraken"],
                check: isSoonRight,
                script: { source, _, _, fair in
                    source == "coinbase" ? .dated(fair * 0.987) { $0 - 86_400_000 } : nil
                }),
            Incident(
                day: "4", what: "two fallbacks frozen alike, then a real fall of 3 %",
                expected: "the fall comes through",
                sources: ["binance", "coinbase", "bitstamp"], seconds: 420,
                market: { $0 >= 300 ? 66_833 : market($0) },
                script: { source, seconds, _, _ in
                    guard source != "binance", seconds >= 285 else { return nil }
                    return .dated(68_900) { $0 - Int64((seconds - 285) * 1000) }
                }, check: isSoonRight),
            answers(
                "5", "Binance refuses at the first start, CryptoCompare answers", "shown in the tick it arrives in",
                sources: ["binance", "cryptocompare"],
                check: { shown in
                    expect(
                        (shown.ticks.first?.state.freshness == .fresh, "not in the first tick"),
                        (shown.ticks.first?.state.confirmation == .unconfirmed, "not called unconfirmed"))
                }, script: { source, _, _, _ in source == "binance" ? .fails(.refused("HTTP 451")) : nil }),
            answers(
                "5", "CryptoCompare alone", "shown in the tick it arrives in", sources: ["cryptocompare"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { _, _, _, _ in nil }),
            answers(
                "5", "five sources, of which one answers", "shown in the tick it arrives in",
                sources: ["binance", "cryptocompare", "coinbase", "bitstamp", "kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { source, _, _, _ in source == "bitstamp" ? nil : .fails(.unavailable("HTTP 503")) }),
            answers(
                "6", "Kraken alone, once in two seconds", "as fresh as its limit allows", sources: ["kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { _, _, _, _ in nil }),
            answers(
                "6", "CryptoCompare and Kraken", "as fresh as their limits allow",
                sources: ["cryptocompare", "kraken"],
                check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { _, _, _, _ in nil }),
            answers(
                "7", "three seconds of 403 from all sources", "back after a minute",
                sources: ["binance", "coinbase", "bitstamp", "kraken"], seconds: 1200,
                check: { shown in
                    expect((shown.stale.count <= 66, "\(shown.stale.count) stale"), (shown.wrong == 0, "wrong"))
                },
                script: { _, seconds, _, _ in
                    (300..<303).contains(seconds) ? .fails(.refused("HTTP 403")) : nil
                }),
            answers(
                "8", "one response dated 55 s ahead", "the next ones are not old",
                sources: ["coinbase"], check: { shown in expect((shown.stale.isEmpty, "\(shown.stale.count) stale")) },
                script: { _, _, ask, fair in ask == 60 ? .dated(fair) { $0 + 55_000 } : nil }),
        ] + lagging

    /// A primary that lags by 30 s, or stands still except for noise, while the market falls: 20 runs of each, with different phases.
    private static let lagging: [Incident] = (0..<80).map { run in
        let (phase, isFrozen, isSlow) = (run % 20, run / 20 % 2 == 1, run / 40 == 1)
        // -5 % a minute, or -0.3 % a second.
        let slope = isSlow ? 0.000855 : 0.003
        let start = 300 + Double(phase) * 0.73
        let market: @Sendable (Double) -> Double = { 68_900 * (1 - slope * min(60, max(0, $0 - start))) }
        let limit = isSlow ? 1 : 3
        return Incident(
            day: "9",
            what:
                "the primary \(isFrozen ? "stands still" : "lags") at \(isSlow ? "-5 % a minute" : "-0.3 % a second"), phase \(phase)",
            expected: "at most \(limit) s wrong", seconds: 420, market: market,
            script: { source, seconds, _, fair in
                guard source == "binance", seconds >= start else { return nil }
                let noise = 1 + 0.0001 * ((seconds * 7.3).truncatingRemainder(dividingBy: 2) - 1)
                return .price(market(isFrozen ? start : seconds - 30) * noise)
            },
            check: { shown in expect((shown.wrong <= limit, "\(shown.wrong) s wrong and fresh")) })
    }
}

extension Shown {
    /// The number of ticks that showed a price as fresh that was more than 1 % off.
    var wrong: Int { fresh.count { abs($0.error) > 0.01 } }
}

/// Runs the cases one after the other, and prints a line for each.
func rehearseCases(on clock: VirtualClock) async throws {
    var failed = 0
    for scenario in Incident.cases {
        let shown = try await scenario.run(on: clock)
        let wrong = scenario.check(shown)
        if wrong != nil { failed += 1 }
        print(
            "\(wrong == nil ? "ok" : "FAILED") | \(scenario.day) | \(scenario.what) | \(shown.wrong) | \(shown.stale.count)"
        )
        guard let wrong else { continue }
        print("    \(wrong)")
        for tick in shown.ticks where tick.state.failure != nil || abs(tick.error) > 0.01 {
            let price = tick.state.quote.map { "\($0.value) \($0.source)" } ?? "-"
            print("    \(tick.seconds): \(price) \(tick.state.failure ?? "\(tick.error * 100) % off")")
        }
    }
    print("\(Incident.cases.count) cases, \(failed) failed")
}
