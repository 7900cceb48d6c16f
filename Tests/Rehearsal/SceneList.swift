import BTCPriceCore
import Glibc

private let median = SelectionRules(mode: .median, quorum: 3)
private let dollars = ["coinbase", "kraken"]

/// A factor that goes from 1 to `share` within `length` seconds or at once, and stays there.
func ramp(to share: Double, over length: Double, from start: Double = 0) -> @Sendable (Double) -> Double {
    { $0 < start ? 1 : 1 - (1 - share) * (length > 0 ? min(1, ($0 - start) / length) : 1) }
}

private func falling(to share: Double, over length: Double) -> @Sendable (Double) -> Double {
    { [fall = ramp(to: share, over: length)] in Scene.calm($0) * fall($0) }
}

/// The false price of some sources: `share` a minute more, without an end.
private func drift(_ liars: String..., by share: Double) -> @Sendable (String, Double) -> Double {
    drift(liars, by: share)
}

private func drift(_ liars: [String], by share: Double) -> @Sendable (String, Double) -> Double {
    { source, seconds in liars.contains(source) ? 1 + share * seconds / 60 : 1 }
}

private func lying(_ liars: String..., factor: @escaping @Sendable (Double) -> Double)
    -> @Sendable (String, Double) -> Double
{
    { source, seconds in liars.contains(source) ? factor(seconds) : 1 }
}

/// From the end of the warm-up on, these sources do not respond, for some seconds.
private func silent(
    _ sources: String..., for seconds: Double = .infinity, answer: VenueAnswer = .fails(.unavailable("HTTP 503"))
) -> @Sendable (Scene.Ask) -> VenueAnswer? {
    { ask in sources.contains(ask.source) && (0..<seconds).contains(ask.seconds) ? answer : nil }
}

extension Scene {
    static let all: [Scene] =
        colluding + fewSources + drifting + crashes + frozen + tether + thin + calmHours + francs

    private static let colluding: [Scene] = {
        var scenes: [Scene] = []
        for (index, first) in four.enumerated() {
            for second in four.dropFirst(index + 1) {
                let pair = "\(first) and \(second)"
                scenes += [
                    Scene(name: "collude step, \(pair)", lie: lying(first, second) { _ in 1.03 }),
                    Scene(name: "collude slide, \(pair)", lie: lying(first, second) { 1 + 0.03 * min(1, $0 / 60) }),
                    Scene(name: "collude 0.05 %/min, \(pair)", seconds: 3960, lie: drift(first, second, by: 0.0005)),
                    Scene(name: "collude 0.15 %/min, \(pair)", seconds: 3960, lie: drift(first, second, by: 0.0015)),
                    Scene(
                        name: "collude median 0.05 %/min, \(pair)", rules: median, seconds: 3960,
                        lie: drift(first, second, by: 0.0005)),
                    Scene(
                        name: "collude median 0.15 %/min, \(pair)", rules: median, seconds: 3960,
                        lie: drift(first, second, by: 0.0015)),
                ]
            }
        }
        for seconds in [30.0, 90] {
            scenes += [
                Scene(
                    name: "collude step, binance and coinbase, the others silent for \(Int(seconds)) s",
                    lie: lying("binance", "coinbase") { _ in 1.03 }, script: silent("bitstamp", "kraken", for: seconds)),
                Scene(
                    name: "collude step, bitstamp and kraken, the others silent for \(Int(seconds)) s",
                    lie: lying("bitstamp", "kraken") { _ in 1.03 }, script: silent("binance", "coinbase", for: seconds)),
            ]
        }
        return scenes
    }()

    private static let fewSources = [
        Scene(
            name: "two of four down, the primary slides 5 % in 60 s",
            lie: lying("binance", factor: ramp(to: 0.95, over: 60)), script: silent("bitstamp", "kraken")),
        Scene(
            name: "two sources, first 1.1 % off", sources: dollars, seconds: 1200, lie: lying("coinbase") { _ in 0.989 }
        ),
        Scene(
            name: "two sources, second 1.1 % off", sources: dollars, seconds: 1200, lie: lying("kraken") { _ in 0.989 }),
        Scene(name: "two sources, first drifts", sources: dollars, seconds: 3960, lie: drift("coinbase", by: 0.0005)),
        Scene(name: "two sources, second drifts", sources: dollars, seconds: 3960, lie: drift("kraken", by: 0.0005)),
        Scene(
            name: "three sources 0.25 % apart, first drifts", sources: ["coinbase", "bitstamp", "kraken"],
            seconds: 3960,
            apart: { source, _ in source == "kraken" ? -0.0025 : 0 }, lie: drift("coinbase", by: 0.0005)),
        Scene(
            name: "coinbase, cryptocompare and kraken drift 0.1 %/min",
            sources: ["binance", "cryptocompare", "coinbase", "bitstamp", "kraken"], seconds: 2400,
            lie: drift("coinbase", "cryptocompare", "kraken", by: 0.001)),
        Scene(name: "second of four 1.1 % off", seconds: 1200, lie: lying("coinbase") { _ in 0.989 }),
    ]

    private static let drifting = [(1, "binance"), (3, "binance"), (8, "binance"), (1, "coinbase"), (3, "coinbase")].map
    {
        hours, source in
        Scene(
            name: "\(source == "binance" ? "primary" : "secondary") drifts 2 % in \(hours) h", seconds: hours * 3600,
            lie: drift(source, by: 0.02 / 60 / Double(hours)))
    }

    private static let crashes = [
        Scene(name: "crash 5 % in 60 s", market: falling(to: 0.95, over: 60)),
        Scene(name: "crash 5 % in 5 s", market: falling(to: 0.95, over: 5)),
        Scene(name: "crash 5 % at once", market: falling(to: 0.95, over: 0)),
        Scene(name: "crash 5 % at once, median", rules: median, market: falling(to: 0.95, over: 0)),
        Scene(name: "crash 5 % at once, two sources", sources: dollars, market: falling(to: 0.95, over: 0)),
        Scene(
            name: "crash 5 % in 60 s, one source", sources: ["coinbase"], seconds: 720, warmUp: 900,
            market: falling(to: 0.95, over: 60)),
        Scene(
            name: "crash 5 % at once, one source", sources: ["coinbase"], seconds: 720, warmUp: 900,
            market: falling(to: 0.95, over: 0)),
        Scene(
            name: "crash 5 % in 60 s, venues 2.8 % apart", market: falling(to: 0.95, over: 60),
            apart: { source, seconds in
                let share = min(max(0, seconds / 240), max(0, 1 - seconds / 240))
                let offsets = ["binance": 0.014, "coinbase": -0.014, "bitstamp": 0.005, "kraken": -0.006]
                return (offsets[source] ?? 0) * min(1, share * 4)
            }),
        Scene(
            name: "crash 5 % in 20 s, two of four hang", market: falling(to: 0.95, over: 20),
            script: silent("coinbase", "bitstamp", answer: .hangs)),
        Scene(
            name: "flash crash of 8 % and back in 20 s",
            market: { calm($0) * (1 - 0.08 * max(0, 1 - abs($0 - 10) / 10)) }),
    ]

    /// The primary repeats one response.
    private static let frozen: [Scene] = {
        let script: @Sendable (Double) -> @Sendable (Ask) -> VenueAnswer? = { end in
            { $0.source == "binance" && (0..<end).contains($0.seconds) ? .price(68_900) : nil }
        }
        return [0.0005, 0.001, 0.002, 0.005].map { slope in
            Scene(
                name: "primary frozen, market -\(slope * 100) %/s",
                market: { 68_900 * (1 - slope * min(60, max(0, $0))) }, script: script(.infinity))
        } + [
            Scene(
                name: "primary frozen for an hour, market drifts 2 %", seconds: 3900,
                market: falling(to: 0.98, over: 3600),
                script: script(3600))
        ]
    }()

    private static let tether: [Scene] = {
        let slow = ramp(to: 0.9, over: 600)
        let atOnce = ramp(to: 0.95, over: 0)
        func scene(
            _ name: String, _ mode: PriceMode, _ peg: PegPolicy, _ seconds: Int,
            _ value: @escaping @Sendable (Double) -> Double
        ) -> Scene {
            Scene(
                name: "USDT \(name)", rules: SelectionRules(mode: mode, quorum: 3, peg: peg), seconds: seconds,
                peg: value)
        }
        return [
            scene("to 0.9 in 10 min, warn", .primary, .warn, 900, slow),
            scene("to 0.9 in 10 min, convert", .primary, .convert, 900, slow),
            scene("to 0.95 at once, warn", .primary, .warn, 300, atOnce),
            scene("to 0.95 at once, median convert", .median, .convert, 300, atOnce),
        ]
            + [
                ("warn", PriceMode.primary, PegPolicy.warn), ("convert", .primary, .convert),
                ("median warn", .median, .warn),
                ("median convert", .median, .convert),
            ].map { name, mode, peg in
                Scene(
                    name: "kraken and coinbase lie by -3 %, also about USDT, \(name)",
                    rules: SelectionRules(mode: mode, quorum: 3, peg: peg), statedPeg: { $0 < 0 ? 1 : 0.97 },
                    lie: lying("kraken", "coinbase") { _ in 0.97 })
            }
    }()

    /// Every market has a trade only once in some seconds.
    private static let thin = [8.0, 25, 55].flatMap { length in
        [("calm", 3600, calm), ("crash 5 % in 60 s", 300, falling(to: 0.95, over: 60))].map { name, seconds, market in
            var scene = Scene(name: "a trade in \(Int(length)) s, \(name)", seconds: seconds, market: market)
            scene.script = { [scene] ask in
                let phase = length * Double(four.firstIndex(of: ask.source) ?? 0) / 4
                let trade = ((ask.seconds - phase) / length).rounded(.down) * length + phase
                let price = scene.fair(ask.source, at: trade)
                // The time of its response is that of the trade.
                return ask.source == "coinbase" ? .madeAt(price, trade + ask.begun) : .price(price)
            }
            return scene
        }
    }

    private static let seven: [Beside] = [
        (Currency.eur, 0.86), (.gbp, 0.75), (.chf, 0.8), (.cad, 1.38), (.aud, 1.53), (.jpy, 150),
    ].map { currency, rate in Beside(currency) { _ in rate } }

    /// A whole hour from the start on.
    private static let calmHours: [Scene] = [("one currency", []), ("seven currencies", seven)].flatMap {
        name, beside in
        [("primary", SelectionRules(), 3), ("median", median, 3), ("primary, observer 15 s", SelectionRules(), 15)].map
        {
            Scene(
                name: "calm, \(name), \($0)", rules: $1, beside: beside, seconds: 3600, warmUp: 0,
                observes: .seconds($2))
        }
    }

    private static func franc(
        _ name: String, interval: Duration = .seconds(10), seconds: Int,
        market: @escaping @Sendable (Double) -> Double = calm,
        rate: @escaping @Sendable (Double) -> Double = { _ in 0.8 },
        answer: @escaping @Sendable (Ask) -> Double? = { _ in nil }
    ) -> Scene {
        Scene(
            name: "CHF \(name)", beside: [Beside(.chf, interval: interval, rate: rate)], seconds: seconds,
            warmUp: 900, market: market,
            script: { ask in ask.currency == .chf && ask.seconds >= 0 ? answer(ask).map { .price($0) } : nil })
    }

    /// A currency with one market.
    private static let francs = [
        franc(
            "slides 0.8 % a second", interval: .seconds(1), seconds: 300,
            answer: { $0.fair * pow(1.008, min($0.seconds, 100)) }),
        franc(
            "slides 1.3 % a tick of 10 s", seconds: 600, answer: { $0.fair * pow(1.013, min($0.seconds / 10, 100)) }),
        franc(
            "repeats a response, the dollar's price falls 8 % in 60 s", seconds: 300,
            market: falling(to: 0.92, over: 60), answer: { _ in 68_900 * 0.8 }),
        franc("falls 8 % with the dollar's price in 60 s", seconds: 300, market: falling(to: 0.92, over: 60)),
        franc(
            "rises by 20 % in 2 min, 2015-01-15", seconds: 900,
            rate: { [rise = ramp(to: 0.8, over: 120)] in 0.8 * rise($0) }),
        franc("calm", seconds: 3600),
    ]
}
