import BTCPriceCore

extension Scene {
    // MARK: - Values that are not valid

    static let wrongValues: [Scene] = [
        incident(
            day: "2021-12-14", what: "a site shows 850,867,136,053.72",
            expected: "refused", market: { _ in 47_000 },
            script: { ask in
                ask.source == "binance" && (300..<400).contains(ask.seconds) ? .price(850_867_136_053.72) : nil
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.told("outside 1 to 100000000") > 0, "not told"))
            }),
        incident(
            day: "various", what: "price 0, below 0", expected: "refused",
            script: { ask in ask.source == "binance" && ask.number % 5 == 4 ? .price(ask.number % 2 == 0 ? 0 : -1) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2019-2025", what: "a price ten times too high or too low",
            expected: "never comes out",
            script: { ask in
                guard ask.source == "binance" else { return nil }
                if (200..<260).contains(ask.seconds) { return .price(ask.fair / 10) }
                return (400..<460).contains(ask.seconds) ? .price(ask.fair * 10) : nil
            },
            check: { shown in expect(isTrue(shown), (shown.stale.count <= 3, "stale")) }),
        incident(
            day: "2022-06", what: "a test network is configured and serves 100,000 from the first answer on",
            expected: "not even the first price is believed by itself", market: { _ in 22_000 },
            script: { ask in ask.source == "binance" ? .price(100_000) : nil },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.count <= 2, "stale"),
                    (shown.told("first price") > 0, "not told"))
            }),
    ]

    // MARK: - Sources that do not respond, or never will

    private static func down(
        _ day: String, _ what: String, _ expected: String, _ sources: [String], _ error: PriceLoadingError,
        from start: Double = 300, to end: Double = .infinity, of all: [String]? = nil, seconds: Int = 1200,
        interval: Duration = .seconds(1), lines: Int = 12
    ) -> Scene {
        incident(
            day: day, what: what, expected: expected,
            sources: all ?? four, seconds: seconds,
            interval: interval,
            script: { ask in
                sources.contains(ask.source) && ask.seconds >= start && ask.seconds < end ? .fails(error) : nil
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "\(shown.stale.count) stale"),
                    (shown.lines.count <= lines, "\(shown.lines.count) lines"),
                    (sources.allSatisfy { shown.told($0) > 0 }, "not told"),
                    (
                        end > Double(seconds) || shown.fresh(from: sources[0], after: end + 320) > 0
                            || sources[0] != (all ?? ["binance"])[0],
                        "it did not come back"
                    ))
            })
    }

    static let outages: [Scene] = [
        down(
            "2025-11-18", "a CDN fails: pages of HTML from several exchanges for hours",
            "the others go on", ["coinbase", "kraken", "bitstamp"], .unavailable("HTTP 520"), to: 3000, seconds: 4200),
        down(
            "2025-10-20", "a cloud region fails and Coinbase, the primary here, with it",
            "the fallback in the same tick, and back by itself", ["coinbase"], .unavailable("HTTP 503"), to: 6000,
            of: ["coinbase", "bitstamp", "kraken", "binance"], seconds: 7200),
        down(
            "2018-01-11", "Kraken, the primary here, is away for two days",
            "no flood of lines, and back by itself", ["kraken"], .unavailable("HTTP 503"), to: 173_100,
            of: ["kraken", "binance", "coinbase"], seconds: 175_000, interval: .seconds(2)),
        down(
            "2026-05-21", "CryptoCompare asks for a key: 401 for good",
            "told at the start, and asked rarely", ["cryptocompare"], .refused("HTTP 401"), from: 0,
            of: ["binance", "cryptocompare", "coinbase"]),
        down(
            "2025-03", "a name is removed from the DNS", "told, and passed over", ["cryptocompare"],
            .unreachable("the name is not known (NXDOMAIN)"), from: 0, of: ["binance", "cryptocompare", "coinbase"]),
        down(
            "2022-11-30", "451 for a region, unannounced", "the fallback; asked about once a day", ["binance"],
            .refused("HTTP 451")),
        down(
            "2020-04-15", "TLS handshakes end in internal_error for hours", "the fallback", ["binance"],
            .unreachable("TLS: internal_error"), to: 5000, seconds: 6000),
        down(
            "ISP", "a provider's own certificate in the middle", "never trusted: the fallback", ["binance"],
            .unreachable("the certificate is not trusted")),
        down(
            "2026-07-09", "an upgrade cuts all connections", "one answer lost, not one tick", ["binance"],
            .unreachable("connection reset"), from: 300, to: 301),
        incident(
            day: "repeated", what: "connected, and silent", expected: "the fallback in every tick",
            script: { ask in ask.source == "binance" && ask.seconds >= 300 ? .hangs : nil },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "\(shown.stale.count) stale")) }),
    ]

    // MARK: - Clocks

    static let clocks: [Scene] = [
        incident(
            day: "2024-08-08", what: "the venue's clock is 1.273 s ahead of ours",
            expected: "no effect: ages are by our own clock", sources: ["coinbase", "bitstamp"],
            script: { ask in .dated(ask.fair) { $0 + 1273 } },
            check: { shown in expect(isTrue(shown), (shown.stale.isEmpty, "stale")) }),
        incident(
            day: "2025-01-01", what: "times change from milliseconds to microseconds and back",
            expected: "a time from the far future is not remembered", sources: ["coinbase", "bitstamp"],
            script: { ask in
                let isMicroseconds = ask.source == "coinbase" && (200..<400).contains(ask.seconds)
                return .dated(ask.fair) { isMicroseconds ? $0 * 1000 : $0 }
            },
            check: { shown in
                expect(
                    isTrue(shown), (shown.stale.isEmpty, "stale"),
                    (shown.fresh(from: "coinbase", after: 420) > 150, "its later answers were refused"))
            }),
    ]
}
