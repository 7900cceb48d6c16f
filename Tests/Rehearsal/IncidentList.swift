import BTCPriceCore

/// Checks the conditions of a scenario.
/// - Returns: The text of the first condition that does not hold.
func expect(_ conditions: (Bool, String)...) -> String? {
    conditions.first { !$0.0 }?.1
}

/// Checks that every shown price is the market's price.
func isTrue(_ shown: Shown, within share: Double = 0.001) -> (Bool, String) {
    (shown.worst <= share, "a price was \(shown.worst * 100) % off")
}

extension Scene {
    /// A scene without a warm-up in which something must be shown.
    /// - Parameters:
    ///   - day: The date, as in the list of incidents.
    ///   - check: Returns the error in the shown prices; `nil` for none.
    static func incident(
        day: String, what: String, expected: String, sources: [String] = four, rules: SelectionRules = SelectionRules(),
        stored: Double? = nil, seconds: Int = 600, interval: Duration = .seconds(1),
        market: @escaping @Sendable (Double) -> Double = { _ in 60_000 },
        peg: @escaping @Sendable (Double) -> Double = { _ in 1 },
        script: @escaping @Sendable (Ask) -> VenueAnswer? = { _ in nil }, check: @escaping @Sendable (Shown) -> String?
    ) -> Scene {
        Scene(
            name: day, expected: Expectation(what: what, text: expected, check: check), sources: sources, rules: rules,
            stored: stored, seconds: seconds, interval: interval, warmUp: 0, market: market, peg: peg, script: script)
    }

    /// Real incidents.
    static let incidents: [Scene] = badPrints + realMoves + pegs + wrongValues + outages + clocks

    // MARK: - A venue prints a false price

    private static let badPrints: [Scene] = [
        incident(
            day: "2018-05-02", what: "Binance answers 9,038.79 for one poll between 9,158.17 and 9,155",
            expected: "the outlier never comes out, and no tick is stale", market: { _ in 9158.17 },
            script: { ask in ask.source == "binance" && ask.number == 100 ? .price(9038.79) : nil },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.fresh(from: "coinbase") >= 1, "nothing else was shown"),
                    (
                        shown.lines.contains { $0.contains("binance gave no price") && $0.contains("contradict") },
                        "the journal does not say why"
                    ))
            }),
        incident(
            day: "2021-10-21", what: "Binance.US falls from 65,760 to 8,200 and back within a minute; others 2.3 %",
            expected: "the print never comes out, the fall of the others does",
            market: { 65_760 * (1 - 0.023 * max(0, 1 - abs($0 - 330) / 30)) },
            script: { ask in
                ask.source == "binance" && (320..<350).contains(ask.seconds) ? .price(8200) : nil
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.fresh(from: "coinbase") > 20, "no other source was shown"),
                    (shown.fresh(from: "binance", after: 500) > 90, "it did not come back"))
            }),
        incident(
            day: "2019-09-15", what: "Kraken prints 8,000 and 12,000 around a market of 10,300",
            expected: "neither comes out", sources: ["kraken", "coinbase", "bitstamp", "binance"],
            interval: .seconds(2), market: { _ in 10_300 },
            script: { ask in
                guard ask.source == "kraken" else { return nil }
                return ask.number % 50 == 20 ? .price(8000) : ask.number % 50 == 45 ? .price(12_000) : nil
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.lines.contains { $0.contains("contradict") }, "nothing was rejected"))
            }),
        incident(
            day: "2019-06-02", what: "Kraken prints 99 % below the market",
            expected: "it never comes out", sources: ["kraken", "coinbase", "bitstamp", "binance"],
            interval: .seconds(2), market: { _ in 8700 },
            script: { ask in
                ask.source == "kraken" && (300..<330).contains(ask.seconds) ? .price(101) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2021-02-22", what: "a real trade at half the price of the other venues",
            expected: "an outlier, real or not, is not the price", sources: ["kraken", "coinbase", "bitstamp"],
            interval: .seconds(2), market: { _ in 54_000 },
            script: { ask in
                ask.source == "kraken" && (300..<420).contains(ask.seconds) ? .price(28_000) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2024-03-18", what: "one USDT market is sold down to 8,900 in ten minutes, others at 67,400",
            expected: "passed over from the first step beyond the bound; never below the worst depeg", seconds: 900,
            market: { _ in 67_400 },
            script: { ask in
                guard ask.source == "binance", ask.seconds >= 300 else { return nil }
                // In steps of 3 %.
                var price = 67_400.0
                for _ in 0..<Int((ask.seconds - 300) / 9) where price > 9175 { price *= 0.97 }
                return .price(price)
            },
            check: { shown in
                expect(isTrue(shown), (shown.stale.isEmpty, "stale: \(shown.stale.count)"))
            }),
        incident(
            day: "2025-12-24", what: "a thin pair at 24,111.22 for 3 s against 87,000",
            expected: "it never comes out", market: { _ in 87_000 },
            script: { ask in
                ask.source == "binance" && (300..<303).contains(ask.seconds) ? .price(24_111.22) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2025-12-10", what: "a wick from 96,000 to 76,000 and back",
            expected: "it never comes out", market: { _ in 96_000 },
            script: { ask in
                ask.source == "binance" && (300..<304).contains(ask.seconds) ? .price(76_000) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2024-02-27", what: "prices 1,000 off and 0 now and then",
            expected: "none comes out", market: { _ in 57_000 },
            script: { ask in
                guard ask.source == "binance" else { return nil }
                switch ask.number % 40 {
                case 13: return .price(58_000)
                case 27: return .price(56_000)
                case 39: return .price(0)
                default: return nil
                }
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.lines.contains { $0.contains("contradict") }, "nothing was rejected"))
            }),
    ]

    // MARK: - The market moves, or one venue does not

    private static let realMoves: [Scene] = [
        incident(
            day: "2025-10-10", what: "5 % in a minute everywhere; one venue silent for 820 s, then 2.5 % off and back",
            expected: "the crash goes through, no tick is stale",
            sources: ["binance", "bitstamp", "coinbase", "kraken"], seconds: 1500,
            // In shocks of 1.7 %, as order books run empty.
            market: { seconds in
                107_900 * (1 - 0.017 * Double(min(3, max(0, Int((seconds - 280.5) / 20)))))
            },
            script: { ask in
                guard ask.source == "bitstamp" else { return nil }
                if (290..<1110).contains(ask.seconds) { return .hangs }
                if (1110..<1140).contains(ask.seconds) {
                    return .price(ask.number % 2 == 0 ? ask.fair * 0.975 : ask.fair * 1.025)
                }
                return nil
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "\(shown.stale.count) ticks were stale"),
                    (shown.validated.confirmed >= 4, "only \(shown.validated.confirmed) were confirmed"))
            }),
        incident(
            day: "2025-10-10", what: "the same with one source only",
            expected: "shown as unconfirmed after three ticks that say the same", sources: ["binance"], stored: 107_900,
            market: { $0 < 300 ? 107_900 : 102_500 },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.count == 2, "\(shown.stale.count) ticks were stale"),
                    (shown.validated.unconfirmed >= 1, "none was unconfirmed"))
            }),
        incident(
            day: "2023-03-24", what: "Binance answers 28,080 for 2.5 h while Coinbase reaches 27,651",
            expected: "found, told, and passed over until it moves again", seconds: 10_800,
            market: { seconds in
                28_080 - 429 * min(1, max(0, (seconds - 600) / 5400)) + 8 * (seconds / 40).remainder(dividingBy: 1)
            },
            script: { ask in
                ask.source == "binance" && (600..<9600).contains(ask.seconds) ? .price(28_080) : nil
            },
            check: { shown in
                expect(
                    // It is shown until it is detected, and is off by as much as the others had to move.
                    isTrue(shown, within: 0.006), (shown.stale.count <= 1, "stale"),
                    (shown.fresh(from: "binance", after: 3600, before: 9600) == 0, "not passed over"),
                    (shown.fresh(from: "binance", after: 10_200) > 500, "it did not come back"),
                    (shown.told("stands still at 28080") >= 1, "not told"))
            }),
        incident(
            day: "2018-01-01", what: "one cache node answers a ticker of ten hours ago every few polls",
            expected: "what goes backwards in the venue's own time is refused",
            sources: ["coinbase", "bitstamp", "kraken", "binance"], market: { _ in 13_500 },
            script: { ask in
                ask.source == "coinbase" && ask.number % 4 == 3
                    ? .marked(
                        13_000,
                        FeedPosition(time: Timestamp(milliseconds: VirtualDaemon.wallStart - 36_000_000), sequence: 1)
                    )
                    : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
    ]

    // MARK: - USDT is not the dollar

    private static let pegs: [Scene] = [
        incident(
            day: "2018-10-15", what: "USDT falls to 0.87 dollars: BTC at 7,380 USDT and 6,420 dollars",
            expected: "the USDT price is shown as one in USDT, with a warning", seconds: 1800, market: { _ in 6420 },
            peg: ramp(to: 0.87, over: 900, from: 300),
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"), (shown.warned > 1200, "not warned"),
                    (shown.told("USDT is off its peg") == 1, "told \(shown.told("USDT is off its peg")) times"))
            }),
        incident(
            day: "2022-05-12", what: "USDT falls to 0.95 and comes back; currency.usdt = convert",
            expected: "the price stays one in dollars", rules: SelectionRules(peg: .convert), seconds: 3600,
            market: { _ in 28_900 },
            peg: { 1 - 0.05 * max(0, 1 - abs($0 - 1800) / 900) },
            check: { shown in
                // The rate is as old as the observer's last request, so the error is the peg's move since then.
                expect(
                    isTrue(shown, within: 0.006), (shown.stale.isEmpty, "stale"),
                    (
                        shown.fresh.allSatisfy {
                            $0.state.quote?.source != "binance" || $0.state.price?.conversion != nil
                        },
                        "not converted"
                    ),
                    (shown.told("USDT is back at its peg") == 1, "not told that it is back"))
            }),
        incident(
            day: "2023-03-11", what: "USDT at 1.017 dollars: BTCUSDT/BTCUSD 0.9837",
            expected: "a warning", seconds: 1800, market: { _ in 22_300 }, peg: ramp(to: 1.017, over: 600, from: 300),
            check: { shown in
                expect(isTrue(shown), (shown.stale.isEmpty, "stale"), (shown.warned > 800, "not warned"))
            }),
    ]
}
