import BTCPriceCore
import BTCPriceFeature

extension Invocation {
    /// Reads the forms that status bars and scripts use most, without the cost of the whole parser. Returns `nil` for everything
    /// else, which ArgumentParser then reads. A test checks that both give the same result.
    init?(hotForm arguments: some Collection<String>) {
        switch arguments.first {
        case "current":
            var options = CurrentOptions()
            guard let words = HotWords(arguments.dropFirst(), policies: true) else { return nil }
            options.asking = AskingOptions(socket: words.socket, policy: words.policy)
            options.output = words.output
            self = .current(options)
        case "watch":
            guard let words = HotWords(arguments.dropFirst(), policies: false) else { return nil }
            self = .watch(WatchOptions(socket: words.socket, output: words.output))
        default: return nil
        }
    }
}

/// The options of a hot form. Each occurs at most once; a value follows its option.
private struct HotWords {
    var socket: String?
    var policy = CachePolicy.localFirst
    var output = PriceOutput()

    init?(_ arguments: some Collection<String>, policies: Bool) {
        var index = arguments.startIndex
        while index != arguments.endIndex {
            let word = arguments[index]
            index = arguments.index(after: index)
            switch word {
            case "--json" where output.form == .text: output.form = .json
            case "--raw" where output.form == .text: output.form = .raw
            case "--utc" where !output.timestamps.isUTC: output.timestamps.isUTC = true
            case "--iso" where !output.timestamps.isISO: output.timestamps.isISO = true
            case "--refresh" where policies && policy == .localFirst: policy = .remoteFirst
            case "--no-cache" where policies && policy == .localFirst: policy = .noCache
            case "--socket", "--format", "--bar":
                guard index != arguments.endIndex, arguments[index].utf8.first != UInt8(ascii: "-"),
                    take(word, arguments[index])
                else { return nil }
                index = arguments.index(after: index)
            default: return nil
            }
        }
    }

    private mutating func take(_ name: String, _ value: String) -> Bool {
        switch name {
        case "--socket":
            guard socket == nil else { return false }
            socket = value
        case "--bar":
            guard output.form == .text, let bar = Bar(rawValue: value) else { return false }
            output.form = .bar(bar)
        default:
            guard output.form == .text, let template = try? FormatTemplate(value) else { return false }
            output.form = .format(template)
        }
        return true
    }
}
