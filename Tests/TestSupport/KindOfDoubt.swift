package import BTCPriceCore
import FoundationEssentials
import Glibc

/// The kinds of doubt that a price can be in, to test that every place says so.
package enum KindOfDoubt: String, CaseIterable, Sendable {
    case sure
    case stale
    /// It was unconfirmed at its moment.
    case staleUnconfirmed
    case unconfirmed
    /// Only one of several exchanges gives it.
    case single
    case derived
    /// It is derived by a rate that a newer one contradicts.
    case rateInDoubt
    case paused
    case none

    /// The present of the states.
    package static let now = ObservationTime(
        wall: Timestamp(milliseconds: 1_795_340_125_112), boottime: .boot + 125_000)

    package var state: PriceState {
        let isDerived = self == .derived || self == .rateInDoubt
        let (currency, market) = isDerived ? ("PLN", "EUR") : ("USD", "BTC/USD")
        let stales = [.stale, .staleUnconfirmed, .paused].contains(self)
        let observed = stales ? BootTime.boot + 30_000 : .boot + 124_500
        let quote = PriceQuote(
            value: isDerived ? 250_764 : Price(6_890_123, scale: 2), currency: currency,
            timestamp: Self.now.wallTime(of: observed), source: "kraken", market: market)
        if self == .none {
            var state = PriceState.empty()
            state.ticks.failure = "kraken: HTTP 503"
            return state
        }
        let confirmation: Confirmation =
            switch self {
            case .sure, .stale, .paused: .confirmed
            case .single: .single
            default: .unconfirmed
            }
        var state = PriceState(
            tick: 7, freshness: .fresh, quote: quote, observedBoottime: observed, confirmation: confirmation,
            failure: nil,
            uncertainty: Uncertainty(
                plusMinus: confirmation == .unconfirmed ? 900 : Price(4_10, scale: 2),
                markets: confirmation == .single ? 1 : 3),
            currency: currency,
            day: isDerived
                ? nil
                : PriceDay(
                    since: Timestamp(milliseconds: Self.now.wall.milliseconds - 80_000_000), open: 68_000,
                    high: 69_500, low: 67_800, close: Price(6_890_123, scale: 2),
                    until: Self.now.wallTime(of: observed), coveredMinutes: stales ? 700 : 1330),
            freshUntil: .boot + 127_000)
        switch self {
        case .unconfirmed, .staleUnconfirmed: state.standing.warning = "coinbase ($69,801.23) contradicts it"
        case .single: state.standing.warning = "only kraken gives a price"
        case .derived, .rateInDoubt:
            state.price?.derivation = Derivation(
                value: 59_411, currency: "EUR", rate: Price(42_208, scale: 4), rateSource: "ecb", rateDate: "2026-11-20"
            )
            if self == .rateInDoubt { state.standing.warning = "the rate of ecb has moved by 24 %" }
        default: break
        }
        state.standing.isInDoubt = confirmation == .unconfirmed
        if stales { state.becomeStale(because: self == .paused ? PriceState.pausedFailure : "kraken: HTTP 503") }
        return state
    }
}

/// What can be known of a span of the past, to test that every place says so.
package enum KindOfCandle: String, CaseIterable, Sendable {
    case wholeMinute
    case minuteInPart
    case minuteInDoubt
    case minuteOfSomeDoubt
    case minuteOfOneSource
    case exchangesMinute
    case completedMinute
    case wholeHour
    case hourInPart
    case wholeDay

    package var step: Candle.Step {
        switch self {
        case .wholeHour, .hourInPart: .hour
        case .wholeDay: .day
        default: .minute
        }
    }

    package var candle: Candle {
        let isExchanges = self == .exchangesMinute
        var candle = Candle(
            start: step.start(of: 1_795_340_100 - 86_400), open: 68_900, high: 68_950, low: 68_850, close: 68_910,
            ticks: isExchanges ? 0 : step.seconds, fresh: isExchanges ? 0 : step.seconds,
            origin: isExchanges ? "kraken" : self == .completedMinute ? Candle.mixed : Candle.own)
        if !isExchanges { (candle.doubtful, candle.single) = (0, 0) }
        switch self {
        case .minuteInPart: (candle.covered, candle.fresh) = (7, 7)
        case .minuteInDoubt: candle.doubtful = 60
        case .minuteOfSomeDoubt: candle.doubtful = 5
        case .minuteOfOneSource: candle.single = 40
        case .completedMinute: candle.fresh = 7
        case .hourInPart: candle.covered = 38 * 60
        default: break
        }
        return candle
    }
}

/// A table as text: a line for each place and kind.
package struct DoubtTable {
    package private(set) var text = ""

    package init() {}

    /// - Parameter cells: What the place shows of each kind, in their order. None may be empty.
    package mutating func add<Kind: RawRepresentable<String>>(
        _ place: String, _ kinds: [Kind], _ cell: (Kind) -> String
    ) {
        text += "== \(place)\n"
        for kind in kinds {
            let shown = cell(kind)
            text += "\(kind.rawValue): \(shown.isEmpty ? Self.empty : shown)\n"
        }
    }

    private static let empty = "EMPTY"

    /// Whether no cell is empty, and the table is that of the file `Doubt.golden` beside the test. With UPDATE_GOLDEN in the environment,
    /// the file is written.
    package func isKept(beside test: String = #filePath) throws -> Bool {
        let golden = URL(filePath: test).deletingLastPathComponent().appending(path: "Doubt.golden")
        if getenv("UPDATE_GOLDEN") != nil { try Data(text.utf8).write(to: golden) }
        return try Data(contentsOf: golden) == Data(text.utf8) && !text.contains(Self.empty)
    }
}
