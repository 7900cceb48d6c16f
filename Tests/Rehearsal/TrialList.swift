import BTCPriceCore
import Glibc

extension Trial {
    /// The first word of the name, or the whole name of a trial of the uncertainty.
    var id: String { name.hasPrefix("U ") ? name : String(name.prefix { $0 != " " }) }

    /// When a lie begins.
    static let start = 400.0
    static let median3 = SelectionRules(mode: .median, quorum: 3)
    static let median2 = SelectionRules(mode: .median, quorum: 2)
    static let converting = SelectionRules(peg: .convert)
    static let dollars3 = ["coinbase", "bitstamp", "kraken"]
    static let defaults = ["binance", "cryptocompare", "coinbase", "bitstamp", "kraken"]

    /// A factor that goes to `1 + size` in `length` seconds.
    static func ramp(_ s: Double, _ size: Double, over length: Double, from first: Double = start) -> Double {
        1 + size * min(1, max(0, (s - first) / max(length, 0.001)))
    }

    /// A trial with a script.
    static func lie(
        _ name: String, _ sources: [String] = four, rules: SelectionRules = SelectionRules(), seconds: Double = 1000,
        end: Double = .infinity, say: @escaping @Sendable (Question) -> Said?
    ) -> Trial {
        var trial = Trial(name: name, sources: sources, rules: rules)
        (trial.seconds, trial.end, trial.say) = (seconds, end, say)
        return trial
    }

    /// A trial with a script and other changes.
    static func lie(
        _ name: String, _ sources: [String] = four, rules: SelectionRules = SelectionRules(), seconds: Double = 1000,
        end: Double = .infinity, with change: (inout Trial) -> Void, say: @escaping @Sendable (Question) -> Said?
    ) -> Trial {
        var trial = lie(name, sources, rules: rules, seconds: seconds, end: end, say: say)
        change(&trial)
        return trial
    }

    /// A trial without a lie in the responses.
    static func odd(
        _ name: String, _ sources: [String] = four, rules: SelectionRules = SelectionRules(), seconds: Double = 1000,
        end: Double = .infinity, with change: (inout Trial) -> Void
    ) -> Trial {
        lie(name, sources, rules: rules, seconds: seconds, end: end, with: change, say: { _ in nil })
    }

    /// From the start of the lie on, the fair price of these sources times a factor.
    static func times(
        _ liars: [String], until end: Double = .infinity, _ factor: @escaping @Sendable (Double) -> Double
    ) -> @Sendable (Question) -> Said? {
        { q in
            liars.contains(q.source) && q.currency == .usd && q.s >= start && q.s < end
                ? .price(q.fair * factor(q.s)) : nil
        }
    }

    /// The primary lies and the others need `honest` seconds.
    static func slow(
        _ honest: Double, liar: Double, _ factor: @escaping @Sendable (Double) -> Double
    ) -> @Sendable (Question) -> Said? {
        { q in
            q.source == "binance"
                ? .price(Reply(q.s >= start ? q.fair * factor(q.s) : q.fair, latency: liar))
                : .price(Reply(q.fair, latency: honest))
        }
    }

    /// A currency beside the dollar, which is counted from 1000 s on.
    static func franc(_ t: inout Trial, _ currency: Currency = .chf, interval: Double = 10) {
        let rates: [Currency: Double] = [.chf: 0.8, .eur: 0.86, .gbp: 0.75, .jpy: 150, .cad: 1.38]
        let rate = rates[currency] ?? 1
        t.beside = [Scene.Beside(currency, interval: .milliseconds(Int(interval * 1000))) { _ in rate }]
        t.from = 1000
        t.seconds = max(t.seconds, 2600)
    }

    /// The market of the Swiss franc lies.
    static func alone(
        _ size: Double, over length: Double, from first: Double = 1100, until end: Double = .infinity
    ) -> @Sendable (Question) -> Said? {
        { q in
            q.currency == .chf && q.s >= first && q.s < end
                ? .price(q.fair * ramp(q.s, size, over: length, from: first)) : nil
        }
    }

    /// A repeatable number from 0 to 1.
    static func drawn(_ x: Double) -> Double { abs((sin(x * 12.9898) * 43758.5453).truncatingRemainder(dividingBy: 1)) }

    /// Trades at odd times with an average gap: the time of the last one.
    static func trade(before s: Double, gap: Double, _ salt: Double) -> Double {
        let slot = (s / gap).rounded(.down)
        let own = (slot + drawn(slot + salt)) * gap
        return own <= s ? own : (slot - 1 + drawn(slot - 1 + salt)) * gap
    }

    /// A market that moves in slow and fast waves.
    static func waves(_ size: Double) -> @Sendable (Double) -> Double {
        { s in
            var log = 0.0
            for (period, phase) in [(7.0, 0.3), (23, 1.1), (71, 2), (211, 0.7), (900, 4)] {
                log += size * (period / 60).squareRoot() * sin(s / period * 6.28 + phase)
            }
            return 68_900 * exp(log)
        }
    }

    /// How far each market is from the others for two seconds.
    static let noise: @Sendable (String, Double) -> Double = { source, s in
        0.0003 * (drawn((s / 2).rounded(.down) + Double(source.utf8.count * 7)) - 0.5)
    }
}

// MARK: - The uncertainty

/// Honest markets, in which only the uncertainty is judged.
extension Trial {
    /// What all markets do.
    static let moves = [("calm", 0.00005), ("moving", 0.0006), ("wild", 0.003)]

    static func moving(_ mode: String, _ rules: SelectionRules) -> [Trial] {
        moves.map { name, size in
            odd("U \(mode), \(name)", rules: rules, seconds: 4000) {
                $0.market = waves(size)
                $0.apart = noise
            }
        }
    }

    static func crashing(_ mode: String, _ rules: SelectionRules) -> Trial {
        odd("U \(mode), crash 8 % in 90 s", rules: rules, seconds: 900) {
            $0.market = { 68_900 * ramp($0, -0.08, over: 90) }
            $0.apart = { source, s in
                let offsets = ["binance": -0.008, "coinbase": 0.006, "bitstamp": 0.01, "kraken": -0.004]
                return (offsets[source] ?? 0) * min(1, max(0, s - start) / 20) * max(0, min(1, (700 - s) / 200))
            }
        }
    }

    static func thin(_ mode: String, _ rules: SelectionRules) -> Trial {
        lie(
            "U \(mode), thin 20 s", dollars3, rules: rules, seconds: 4000, with: { $0.market = waves(0.0006) },
            say: { q in
                let then = trade(before: q.s, gap: 20, Double(q.source.utf8.count))
                return .price(Reply(waves(0.0006)(then), madeAt: then))
            })
    }

    static func two(_ mode: String, _ rules: SelectionRules) -> Trial {
        odd(
            "U \(mode), two sources", ["coinbase", "kraken"],
            rules: SelectionRules(mode: rules.mode, quorum: 2, peg: rules.peg), seconds: 4000
        ) {
            $0.market = waves(0.0006)
            $0.apart = noise
        }
    }

    static func streaming(_ name: String, _ size: Double) -> Trial {
        odd("U streams, \(name)", seconds: 2000) {
            $0.market = waves(size)
            $0.apart = noise
            $0.isStreamed = true
        }
    }

    static func beside(_ currency: Currency, _ name: String, _ size: Double) -> Trial {
        odd("U \(currency), \(name)", seconds: 3000) {
            franc(&$0, currency)
            $0.market = waves(size)
            $0.apart = noise
            $0.seconds = 4000
        }
    }

    private static let uncertain =
        [("primary", SelectionRules()), ("median", median3)].flatMap { mode, rules in
            moving(mode, rules) + [two(mode, rules), thin(mode, rules), crashing(mode, rules)]
        } + moves.map { streaming($0, $1) } + moves.map { beside(.eur, $0, $1) } + [beside(.chf, "moving", 0.0006)]
}

// MARK: - The trials

extension Trial {
    static let all: [Trial] =
        outages + slowLinks + wideQuotes + oneMarket + namingPeers + pacedMedians + tethers + doubts + flapping
        + uncertain

    /// All others fail while the primary moves: nobody can contradict it.
    private static let outages: [Trial] = [
        lie("D1 all others are down for 60 s, the primary steps 0.85 % a tick for 6 ticks", end: 460) { q in
            guard q.s >= start, q.s < 460 else { return nil }
            return q.source == "binance"
                ? .price(q.fair * (1 + 0.0085 * min(6, (q.s - start).rounded(.down) + 1))) : .fails
        },
        lie(
            "D2 interval 10 s: all others are down for 120 s, the primary steps 1.5 % a tick for 4 ticks", end: 520,
            with: { $0.interval = 10 },
            say: { q in
                guard q.s >= start, q.s < 520 else { return nil }
                return q.source == "binance"
                    ? .price(q.fair * (1 + 0.015 * min(4, ((q.s - start) / 10).rounded(.down) + 1))) : .fails
            }),
        lie(
            "D3 two sources: the second is limited for 60 s, the first slides 5 % in 30 s", ["coinbase", "kraken"],
            end: 460
        ) { q in
            guard q.s >= start, q.s < 460 else { return nil }
            return q.source == "coinbase" ? .price(q.fair * ramp(q.s, 0.05, over: 30)) : .limited(60)
        },
        lie(
            "C11 interval 60 s: all others are down, the primary steps 2.8 % a tick for 3 ticks", seconds: 2000,
            with: { $0.interval = 60 },
            say: { q in
                guard q.s >= start else { return nil }
                return q.source == "binance"
                    ? .price(q.fair * (1 + 0.028 * min(3, ((q.s - start) / 60).rounded(.down) + 1))) : .fails
            }),
        lie("Y5 all others hang for 10 min, the primary is honest", seconds: 1600, end: 1000) { q in
            q.source != "binance" && q.s >= start && q.s < 1000 ? .hangs : nil
        },
        lie("Z13 the primary lied for 20 s, then the others are down for 2 h", seconds: 8000, end: 420) { q in
            guard q.s >= start else { return nil }
            if q.source == "binance" { return q.s < 420 ? .price(q.fair * 1.03) : nil }
            return q.s >= 421 ? .fails : nil
        },
    ]

    /// The honest ones need most of a second, so there is little time left to ask them.
    private static let slowLinks: [Trial] = [
        lie(
            "C1 the honest respond in 0.7 s, the primary in 0.39 s and slides 5 % in 60 s",
            say: slow(0.7, liar: 0.39) { ramp($0, 0.05, over: 60) }),
        lie(
            "C2 the honest respond in 0.7 s, the primary in 0.39 s and steps 3 %",
            say: slow(0.7, liar: 0.39) { _ in 1.03 }),
        lie(
            "C3 the honest respond in 0.5 s, the primary in 0.79 s and slides 5 % in 60 s",
            say: slow(0.5, liar: 0.79) { ramp($0, 0.05, over: 60) }),
        lie(
            "C4 the honest respond in 0.7 s, the primary in 0.39 s and steps 0.85 % a tick for 6 ticks",
            say: slow(0.7, liar: 0.39) { 1 + 0.0085 * min(6, ($0 - start).rounded(.down) + 1) }),
        lie("Z22 all respond in 0.55 s, the primary steps 3 %", end: 700) { q in
            .price(Reply(q.source == "binance" && q.s >= start && q.s < 700 ? q.fair * 1.03 : q.fair, latency: 0.55))
        },
        lie("Z20 the honest respond in 0.7 s, the primary in 0.1 s and steps 3 %", end: 700) { q in
            q.source == "binance"
                ? .price(Reply(q.s >= start && q.s < 700 ? q.fair * 1.03 : q.fair, latency: 0.1))
                : .price(Reply(q.fair, latency: 0.7))
        },
    ]

    /// A spread gives room: to a liar with its own wide quotes, or to a liar beside an honest wide market.
    private static let wideQuotes: [Trial] = [
        lie("Z1 the first of three quotes 2 % wide, slides to 1.35 % and stays", dollars3, seconds: 3000) { q in
            q.source == "coinbase" && q.s >= start
                ? .price(Reply(q.fair * ramp(q.s, 0.0135, over: 300), half: 0.0099)) : nil
        },
        lie("Z2 the first of three slides to 1.2 % and stays, the honest third is 1.6 % wide", dollars3, seconds: 3000)
        { q in
            if q.source == "kraken" { return .price(Reply(q.fair, half: 0.008)) }
            return q.source == "coinbase" && q.s >= start ? .price(q.fair * ramp(q.s, 0.012, over: 300)) : nil
        },
        lie(
            "Z3 the first of three slides to 1.3 % in 20 min and stays, the honest second is 1.6 % wide", dollars3,
            seconds: 4000
        ) { q in
            if q.source == "bitstamp" { return .price(Reply(q.fair, half: 0.008)) }
            return q.source == "coinbase" && q.s >= start ? .price(q.fair * ramp(q.s, 0.013, over: 1200)) : nil
        },
        lie(
            "Z4 the first of two slides to 1.4 % and stays, the honest second is 1.6 % wide", ["coinbase", "kraken"],
            seconds: 3000
        ) { q in
            if q.source == "kraken" { return .price(Reply(q.fair, half: 0.008)) }
            return q.s >= start ? .price(q.fair * ramp(q.s, 0.014, over: 300)) : nil
        },
        lie("I7 three honest thin markets with a spread of 1 %", dollars3, seconds: 3600) { q in
            let then = trade(before: q.s, gap: 30, Double(q.source.utf8.count))
            return .price(Reply(Scene.calm(then) * (1 + 0.006 * (drawn(then) - 0.5)), half: 0.005, madeAt: then))
        },
    ]

    /// A currency with one market, which only the reference rates and the dollar can contradict.
    private static let oneMarket: [Trial] = [
        lie(
            "Z5 CHF is 60 % too high from the first price on", seconds: 3000,
            with: {
                franc(&$0)
                $0.from = 0
            }, say: alone(0.6, over: 0.01, from: 0)),
        lie(
            "Z6 CHF is 30 % too high after a restart", seconds: 3000,
            with: {
                franc(&$0)
                $0.restart = 1200
            }, say: alone(0.3, over: 0.01, from: 1201)),
        lie(
            "J15 CHF is 3 % too high from the first price on", seconds: 3000,
            with: {
                franc(&$0)
                $0.from = 0
            }, say: alone(0.03, over: 0.01, from: 0)),
        lie(
            "J3 CHF walks 2 % a day for 4 days", seconds: 350_000,
            with: {
                franc(&$0, interval: 60)
                $0.interval = 60
                $0.observes = 15
                $0.rates = (0..<5).map { (Double($0) * 86_400, 1, 0, 2) }
            }, say: alone(0.08, over: 345_600)),
        lie(
            "J6 CHF slides 10 % in 10 min, the rates are 4 days old", seconds: 3000,
            with: {
                franc(&$0)
                $0.rates = [(0, 1, 4, 2)]
            }, say: alone(0.1, over: 600)),
        lie(
            "J16 CHF slides to twice its price in 100 s", seconds: 2000, end: 1700,
            with: { franc(&$0, interval: 1) }, say: alone(1, over: 100, until: 1700)),
        lie(
            "J14 CHF slides 10 % in 10 min while the dollar's sources are down", seconds: 3000, end: 1700,
            with: { franc(&$0) },
            say: { q in
                if q.currency == .usd { return q.s >= 1100 && q.s < 1700 ? .fails : nil }
                return alone(0.1, over: 600, until: 1700)(q)
            }),
        odd(
            "J8 CHF is honest, one of two rates lies by 5 %", seconds: 4000,
            with: {
                franc(&$0)
                $0.rates = [(0, 1, 1, 2), (1100, 1.05, 0, 1)]
            }),
        lie(
            "J13 CHF is honest, the dollar's sources are down for 10 min", seconds: 3000, with: { franc(&$0) },
            say: { q in
                q.currency == .usd && q.s >= 1100 && q.s < 1700 ? .fails : nil
            }),
        odd(
            "P1 CHF is honest and 1.8 % above its rate",
            with: {
                franc(&$0)
                $0.rates = [(0, 1 / 1.018, 0, 2)]
                $0.from = 0
                $0.seconds = 3000
            }),
        odd(
            "P2 CHF is honest and 1.8 % above its rate, a restart",
            with: {
                franc(&$0)
                $0.rates = [(0, 1 / 1.018, 0, 2)]
                $0.restart = 1200
                $0.seconds = 3000
            }),
    ]

    /// A peer says which exchange it has its price from.
    private static let namingPeers: [Trial] = [
        lie(
            "Z28 binance and the peer beside it lie 3 %; the peer names coinbase; coinbase and kraken are honest",
            ["binance", "alpha", "coinbase", "kraken"], end: 700, with: { $0.peers = ["alpha"] },
            say: { q in
                let factor = q.s >= start && q.s < 700 ? 1.03 : 1
                if q.source == "alpha" { return .price(Reply(q.fair * factor, from: "coinbase")) }
                return q.source == "binance" ? .price(q.fair * factor) : nil
            }),
        lie(
            "Z30 a peer and coinbase: the peer names coinbase and steps 3 %", ["alpha", "coinbase"], end: 700,
            with: { $0.peers = ["alpha"] },
            say: { q in
                q.source == "alpha"
                    ? .price(Reply(q.s >= start && q.s < 700 ? q.fair * 1.03 : q.fair, from: "coinbase")) : nil
            }),
        lie(
            "Z31 a peer and coinbase: the peer names coinbase and slides 3 % in 60 s", ["alpha", "coinbase"], end: 700,
            with: { $0.peers = ["alpha"] },
            say: { q in
                q.source == "alpha"
                    ? .price(
                        Reply(q.s >= start && q.s < 700 ? q.fair * ramp(q.s, 0.03, over: 60) : q.fair, from: "coinbase")
                    )
                    : nil
            }),
        lie(
            "Z32 a peer and coinbase: the peer names okx and slides 3 % in 60 s", ["alpha", "coinbase"], end: 700,
            with: { $0.peers = ["alpha"] },
            say: { q in
                q.source == "alpha"
                    ? .price(
                        Reply(q.s >= start && q.s < 700 ? q.fair * ramp(q.s, 0.03, over: 60) : q.fair, from: "okx"))
                    : nil
            }),
        lie(
            "F2 a peer names coinbase and lies 3 %; binance and coinbase are honest", ["binance", "coinbase", "alpha"],
            end: 700, with: { $0.peers = ["alpha"] },
            say: { q in
                q.source == "alpha"
                    ? .price(Reply(q.s >= start && q.s < 700 ? q.fair * 1.03 : q.fair, from: "coinbase")) : nil
            }),
    ]

    /// Medians of sources that are not all asked in each tick.
    private static let pacedMedians: [Trial] = [
        lie(
            "M1 median, quorum 2: binance steps 1.4 %; cryptocompare is asked each 10 s and kraken each 2 s",
            ["binance", "cryptocompare", "kraken"], rules: median2, end: 800,
            say: times(["binance"], until: 800) { _ in 1.014 }),
        lie(
            "M2 median, quorum 3: binance steps 1.4 %; cryptocompare is asked each 10 s and kraken each 2 s",
            ["binance", "cryptocompare", "kraken"], rules: median3, end: 800,
            say: times(["binance"], until: 800) { _ in 1.014 }),
        lie(
            "M3 median, quorum 2: binance slides 1.4 % in 10 min; cryptocompare is asked each 10 s and kraken each 2 s",
            ["binance", "cryptocompare", "kraken"], rules: median2, seconds: 1600,
            say: times(["binance"]) { ramp($0, 0.014, over: 600) }),
        lie(
            "M4 median, quorum 2: binance steps 1.4 %; bitstamp and kraken are honest",
            ["binance", "bitstamp", "kraken"], rules: median2, end: 800,
            say: times(["binance"], until: 800) { _ in 1.014 }),
    ]

    /// One exchange states the price of the tether and is the only other witness.
    private static let tethers: [Trial] = [
        lie(
            "K12 binance and kraken: kraken lies 3 % and states 0.97 for the tether", ["binance", "kraken"], end: 800,
            with: { $0.stated = { $0 >= start && $0 < 800 ? 0.97 : 1 } },
            say: times(["kraken"], until: 800) { _ in 0.97 }),
        lie(
            "K13 convert, binance and kraken: kraken lies 3 % and states 0.97 for the tether", ["binance", "kraken"],
            rules: converting, end: 800, with: { $0.stated = { $0 >= start && $0 < 800 ? 0.97 : 1 } },
            say: times(["kraken"], until: 800) { _ in 0.97 }),
        lie(
            "K15 binance and kraken: a real depeg to 0.95, then kraken fails", ["binance", "kraken"], seconds: 1400,
            with: { $0.peg = { ramp($0, -0.05, over: 60) } },
            say: { q in
                q.source == "kraken" && q.s >= 500 ? .fails : nil
            }),
    ]

    /// A doubt that ends too early or never.
    private static let doubts: [Trial] = [
        lie(
            "Z19 one source jumps 3 % at 420 s and again at 475 s", ["coinbase"], seconds: 800, with: { $0.from = 400 },
            say: { q in
                q.s < 420 ? nil : .price(q.fair * (q.s < 475 ? 1.03 : 1.06))
            }),
        lie("D6 the primary lies 3 % and its partner changes every 10 s", seconds: 1200, end: 800) { q in
            guard q.s >= start, q.s < 800 else { return nil }
            let partner = ["coinbase", "bitstamp", "kraken"][Int((q.s - start) / 10) % 3]
            return q.source == "binance" || q.source == partner ? .price(q.fair * 1.03) : nil
        },
        lie(
            "N4 a reload leaves only the source that was outvoted", end: 800,
            with: { $0.reload = [(450, ["binance"])] }, say: times(["binance"], until: 800) { _ in 1.03 }),
        odd("Z11 interval 60 s, calm and honest", seconds: 4000, with: { $0.interval = 60 }),
        odd("Z12 interval 30 s, calm and honest", seconds: 4000, with: { $0.interval = 30 }),
    ]

    /// Two prices at the border of what counts as agreement.
    private static let flapping: [Trial] = [
        lie(
            "A2 two sources, the first walks to 0.95 % in 2 h", ["coinbase", "kraken"], seconds: 11_200,
            say: times(["coinbase"]) { ramp($0, 0.0095, over: 7200) }),
        lie(
            "A3 two sources, the second walks to 0.95 % in 2 h", ["coinbase", "kraken"], seconds: 11_200,
            say: times(["kraken"]) { ramp($0, 0.0095, over: 7200) }),
        odd(
            "Z16 two honest sources that come to be 0.85 % apart", ["coinbase", "kraken"], seconds: 4000,
            with: { $0.apart = { source, s in source == "kraken" ? 0.0085 * min(1, max(0, s - start) / 1800) : 0 } }),
        lie("E8 binance and coinbase lie 3 %, cryptocompare is honest and late", defaults, end: 700) { q in
            guard q.s >= start, q.s < 700 else { return nil }
            if ["binance", "coinbase"].contains(q.source) { return .price(q.fair * 1.03) }
            return q.source == "cryptocompare" ? .price(Reply(q.fair, latency: 0.2)) : nil
        },
        lie(
            "A8 the primary is 0.53 % off in every second 20 s", seconds: 2000,
            say: times(["binance"]) { Int(($0 - start) / 20).isMultiple(of: 2) ? 1.0053 : 1 }),
    ]
}

// MARK: - The limits

extension Trial {
    /// By id. Those of the honest trials, and of lies that are treated well, are the figures of 1.0.0; widths are what the estimate needs.
    static let wanted: [String: Wanted] = [
        // Outages.
        "D1": Wanted(sureAndWrong: 1, stale: 0, unconfirmedAfter: 65, sourceChanges: 0),
        "D2": Wanted(sureAndWrong: 10, stale: 0, unconfirmedAfter: 65, sourceChanges: 0),
        // A slide is within what a price may move by itself for some seconds.
        "D3": Wanted(sureAndWrong: 3, stale: 2, unconfirmedAfter: 65, sourceChanges: 0),
        "C11": Wanted(sureAndWrong: 60, stale: 0, sourceChanges: 0),
        "Y5": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 2),
        "Z13": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 1, confirmationChanges: 1),
        // Slow links.
        "C1": Wanted(stale: 5, sourceChanges: 2),
        "C2": Wanted(stale: 5, sourceChanges: 2),
        "C3": Wanted(stale: 2, unconfirmed: 1, sourceChanges: 2),
        "C4": Wanted(sureAndWrong: 1, stale: 5, sourceChanges: 2, day: 0.1),
        "Z22": Wanted(stale: 5, sourceChanges: 2),
        "Z20": Wanted(stale: 0, unconfirmed: 4, sourceChanges: 2),
        // Wide quotes.
        "Z1": Wanted(stale: 0, sourceChanges: 6),
        "Z2": Wanted(stale: 0, sourceChanges: 6),
        "Z3": Wanted(stale: 0, sourceChanges: 6),
        "Z4": Wanted(stale: 0, sourceChanges: 6),
        "I7": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        // One market.
        "Z5": Wanted(stale: 0),
        "Z6": Wanted(stale: 0),
        "J15": Wanted(stale: 0),
        // Up to 5 % is within the place's bound and what the rate and the dollar imply.
        "J3": Wanted(sureAndWrong: 190_000, stale: 0, worst: 5.5),
        // The older the rate, the more.
        "J6": Wanted(sureAndWrong: 220, stale: 0),
        // When it comes back by half, that waits for three ticks that agree.
        "J16": Wanted(stale: 4, sourceChanges: 4),
        "J14": Wanted(sureAndWrong: 200, stale: 0),
        "J8": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        "J13": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        "P1": Wanted(stale: 0, unconfirmed: 70, sourceChanges: 0, confirmationChanges: 1),
        "P2": Wanted(stale: 0, unconfirmed: 70, sourceChanges: 0, confirmationChanges: 2),
        // Peers.
        "Z28": Wanted(sureAndWrong: 1, stale: 0, unconfirmedAfter: 65, sourceChanges: 4),
        "Z30": Wanted(sureAndWrong: 1, stale: 4, unconfirmedAfter: 65),
        "Z31": Wanted(sureAndWrong: 1, stale: 4, unconfirmedAfter: 65),
        "Z32": Wanted(stale: 0, unconfirmed: 290, sourceChanges: 2),
        "F2": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        // Medians.
        "M1": Wanted(stale: 0, sourceChanges: 2, worst: 0.75),
        "M2": Wanted(stale: 0, sourceChanges: 2, worst: 0.75),
        "M3": Wanted(stale: 0, sourceChanges: 2, worst: 0.75),
        "M4": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0, worst: 0.75),
        // The tether.
        "K12": Wanted(stale: 2, unconfirmed: 125, sourceChanges: 0),
        "K13": Wanted(stale: 2, unconfirmedAfter: 65),
        "K15": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 15),
        // Doubts.
        "Z19": Wanted(sureAndWrong: 270, stale: 4),
        "D6": Wanted(sureAndWrong: 3, stale: 0),
        "N4": Wanted(unconfirmedAfter: 65),
        "Z11": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        "Z12": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, confirmationChanges: 0),
        // Flapping.
        "A2": Wanted(stale: 0, sourceChanges: 2),
        "A3": Wanted(stale: 0, sourceChanges: 2),
        "Z16": Wanted(stale: 0, sourceChanges: 2),
        "E8": Wanted(stale: 0, sourceChanges: 4),
        "A8": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 16, confirmationChanges: 0),
        // The uncertainty.
        "U primary, calm": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.04, requests: 5310),
        "U primary, moving": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.056, requests: 5310),
        "U primary, wild": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.266, requests: 5311),
        "U primary, two sources": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.07, requests: 4574),
        "U primary, thin 20 s": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 90, width: 0.292, requests: 4944),
        "U primary, crash 8 % in 90 s": Wanted(
            stale: 0, unconfirmed: 9, sourceChanges: 4, contains: 93, width: 0.369, requests: 1216),
        "U median, calm": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.04, requests: 14705),
        "U median, moving": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.05, requests: 14705),
        "U median, wild": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.19, requests: 14705),
        "U median, two sources": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.055, requests: 6303),
        "U median, thin 20 s": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 90, width: 0.221, requests: 10504),
        "U median, crash 8 % in 90 s": Wanted(
            stale: 0, unconfirmed: 115, sourceChanges: 8, contains: 93, width: 0.699, requests: 3311),
        "U streams, calm": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.04, requests: 2657),
        "U streams, moving": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.04, requests: 2657),
        "U streams, wild": Wanted(
            stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.08, requests: 2657),
        "U EUR, calm": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.04, requests: 6160),
        "U EUR, moving": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.16, requests: 6160),
        "U EUR, wild": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 0.77, requests: 6190),
        "U CHF, moving": Wanted(stale: 0, unconfirmed: 0, sourceChanges: 0, contains: 93, width: 3, requests: 5653),
    ]
}
