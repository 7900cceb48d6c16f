import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature

/// A command with its options, read from the command line.
enum Invocation: Equatable {
    case current(CurrentOptions)
    case watch(WatchOptions)
    case wait(WaitOptions)
    case convert(ConvertOptions)
    case history(HistoryOptions)
    case at(AtOptions)
    case chart(ChartOptions)
    case report(ReportOptions)
    case metrics(MetricsOptions)
    case change(ReportOptions.Change, socket: String?, json: Bool, timestamps: ReaderTimestampFormatter)
}

/// The daemon to request the price from, and the policy.
struct AskingOptions: Equatable {
    var socket: String?
    var policy = CachePolicy.localFirst
    /// The maximum age of the price.
    var maxAge: Duration?
    /// ISO 4217; `nil` for the currency in `BTCCTL_CURRENCY`, otherwise the daemon's first.
    var currency: String?
}

/// `btcctl current`
struct CurrentOptions: Equatable {
    var asking = AskingOptions()
    var output = PriceOutput()
}

/// `btcctl watch`
struct WatchOptions: Equatable {
    var socket: String?
    /// ISO 4217; empty for the currency in `BTCCTL_CURRENCY`, otherwise the daemon's first.
    var currencies: [String] = []
    var updates = WatchUpdates.ticks
    var output = PriceOutput()
    var color = ColorChoice.auto
    /// The command to run at each change, or when ``condition`` begins to hold.
    var command: String?
    /// If it is empty, every change of the price counts.
    var condition = PriceCondition()
}

/// `btcctl wait`
struct WaitOptions: Equatable {
    var socket: String?
    var currency: String?
    /// `nil` for no limit.
    var timeout: Duration?
    /// If it is empty, any fresh price is enough.
    var condition = PriceCondition()
    var output = PriceOutput()
}

/// `btcctl convert`
struct ConvertOptions: Equatable {
    /// What is printed for an amount.
    enum Form: Equatable {
        case text
        case json
        case raw
    }

    var asking = AskingOptions()
    var amounts: [GivenAmount] = []
    var form = Form.text
}

/// An amount of the command line.
struct GivenAmount: Equatable {
    let value: Price
    /// `nil` for the currency of the price.
    var unit: Amount.Unit?

    /// - Parameter currency: The currency of the price.
    func amount(in currency: Currency) -> Amount { Amount(value, unit ?? .money(currency)) }
}

/// Whose midnight begins a day.
enum DayZone: String, CaseIterable {
    case utc
    /// That of the reader's time zone.
    case local
}

/// `btcctl history`
struct HistoryOptions: Equatable {
    /// How candles are printed.
    enum Form: Equatable {
        /// A table on a terminal; otherwise, one line per candle.
        case text
        case csv
        case json
    }

    var socket: String?
    var currency: String?
    var from: Timestamp
    var to: Timestamp
    /// What is to be known of the two times.
    var notes: [String] = []
    /// `nil` for the shortest one that covers the span and gives a table of readable length.
    var step: Candle.Step?
    var days = DayZone.utc
    var form = Form.text
    var timestamps = ReaderTimestampFormatter()
}

/// `btcctl at`
struct AtOptions: Equatable {
    var socket: String?
    var currency: String?
    var time: Timestamp
    /// What is to be known of the time.
    var note: String?
    /// The amounts to convert.
    var amounts: [GivenAmount] = []
    /// The longest candle that is precise enough; `nil` for any.
    var maxStep: Candle.Step?
    /// Whether the minute is requested from an exchange if it is not known.
    var fetch = false
    var form = ConvertOptions.Form.text
    var timestamps = ReaderTimestampFormatter()
}

/// `btcctl chart`
struct ChartOptions: Equatable {
    var socket: String?
    var currency: String?
    var span = ChartSpan.day
    var days = DayZone.utc
    var isCandles = false
    var watch = false
    var isASCII = false
    var color = ColorChoice.auto
    var timestamps = ReaderTimestampFormatter()
}

/// `btcctl metrics`
struct MetricsOptions: Equatable {
    var socket: String?
    var format = MetricsText.Format.prometheus
    /// The file to write the metrics to; `nil` for standard output.
    var file: String?
}

/// `btcctl status`, `btcctl sources` and `btcctl currencies`
struct ReportOptions: Equatable {
    enum Question: Equatable {
        case status
        case sources(isVerbose: Bool, currency: String?)
        case currencies
    }

    enum Change: Equatable {
        case pause
        case resume
        /// Clears the cooldown of this source; `nil` for all sources.
        case retry(String?)
    }

    var question: Question
    var socket: String?
    var watch = false
    var json = false
    var timestamps = ReaderTimestampFormatter()
}
