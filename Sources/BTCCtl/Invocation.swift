import BTCPriceCore

/// What the user wants, once the command line is read.
enum Invocation: Equatable {
    case current(CurrentOptions)
    case watch(WatchOptions)
    case report(ReportOptions)
    case change(ReportOptions.Change, socket: String?, json: Bool)
    case wait(WaitOptions)
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
    }

    var question: Question
    var socket: String?
    var watch = false
    var json = false
}

/// `btcctl wait`
struct WaitOptions: Equatable {
    var socket: String?
    /// `nil` for as long as it takes.
    var timeout: Duration?
    var json = false
}

/// `btcctl current`
struct CurrentOptions: Equatable {
    var socket: String?
    var policy = CachePolicy.localFirst
    /// The oldest that the price may be.
    var maxAge: Duration?
    var json = false
}

/// `btcctl watch`
struct WatchOptions: Equatable {
    var socket: String?
    var json = false
}

extension Invocation {
    /// Reads the forms that status bars and scripts use all the time, without the cost of a whole parser. Whatever it does not
    /// know for sure is `nil` and goes to ArgumentParser; a test holds the two to the same meaning.
    init?(hotForm arguments: some Collection<String>) {
        switch arguments.first {
        case "current":
            var options = CurrentOptions()
            for argument in arguments.dropFirst() {
                switch argument {
                case "--json" where !options.json: options.json = true
                case "--refresh" where options.policy == .localFirst: options.policy = .remoteFirst
                case "--no-cache" where options.policy == .localFirst: options.policy = .noCache
                default: return nil
                }
            }
            self = .current(options)
        case "watch":
            var options = WatchOptions()
            for argument in arguments.dropFirst() {
                guard argument == "--json", !options.json else { return nil }
                options.json = true
            }
            self = .watch(options)
        default: return nil
        }
    }
}
