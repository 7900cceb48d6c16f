import BTCPriceCore
import BTCPriceFeature

/// What the user wants, once the command line is read.
enum Invocation: Equatable {
    case current(CurrentOptions)
    case watch(WatchOptions)
    case wait(WaitOptions)
    case convert(ConvertOptions)
    case report(ReportOptions)
    case change(ReportOptions.Change, socket: String?, json: Bool, timestamps: ReaderTimestampFormatter)
}

/// Whom to ask for a price, and how.
struct AskingOptions: Equatable {
    var socket: String?
    var policy = CachePolicy.localFirst
}

/// `btcctl current`
struct CurrentOptions: Equatable {
    var asking = AskingOptions()
    /// The oldest that the price may be.
    var maxAge: Duration?
    var output = PriceOutput()
}

/// `btcctl watch`
struct WatchOptions: Equatable {
    var socket: String?
    var output = PriceOutput()
    var color = ColorChoice.auto
    /// What is run at each change, or when ``condition`` begins to hold.
    var command: String?
    /// Without one, every change of the price counts.
    var condition = PriceCondition()
}

/// `btcctl wait`
struct WaitOptions: Equatable {
    var socket: String?
    /// `nil` for as long as it takes.
    var timeout: Duration?
    /// Without one, any fresh price will do.
    var condition = PriceCondition()
    var output = PriceOutput()
}

/// `btcctl convert`
struct ConvertOptions: Equatable {
    /// What can be printed of an amount.
    enum Form: Equatable {
        case text
        case json
        case raw
    }

    var asking = AskingOptions()
    var amounts: [Amount] = []
    var maxAge: Duration?
    var form = Form.text
}

/// `btcctl status` and `btcctl sources`
struct ReportOptions: Equatable {
    /// What is asked.
    enum Question: Equatable {
        case status
        case sources(isVerbose: Bool)
    }

    /// What is changed.
    enum Change: Equatable {
        case pause
        case resume
        /// Only of this source; `nil` for all.
        case retry(String?)
    }

    var question: Question
    var socket: String?
    var watch = false
    var json = false
    var timestamps = ReaderTimestampFormatter()
}
