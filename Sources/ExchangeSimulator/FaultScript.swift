import Glibc

/// What goes wrong, and when: one rule a line, the first one that fits counts.
///
///     # venue   when            fault
///     binance   request 3-5     status 429 body {"code":-1003}
///     binance   time 10s-20s    refuse
///     coinbase  always          delay 900ms
///     *         request 7       dark
///
/// `when` is `always`, `request N`, `request N-M`, `request N-` (counted from 1 for each venue since the script was set) or
/// `time A-B` (since the script was set; `ms` or `s`; an open end is allowed). The faults are those of ``Fault``.
public struct FaultScript: Sendable, Equatable {
    /// A script that can't be understood.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The line and what is wrong with it.
        public let description: String
    }

    /// What happens to a request.
    public enum Fault: Sendable, Equatable {
        /// `status CODE [retry-after SECONDS] [body TEXT | file PATH]`: this answer instead.
        case answer(status: Int, retryAfter: Int?, body: [UInt8])
        /// `delay 900ms`: the right answer, late.
        case delay(milliseconds: Int64)
        /// `stall-body`: the head and half of the body, then silence.
        case stallBody
        /// `reset`: the connection is reset instead of an answer.
        case reset
        /// `refuse`: nobody listens, and every connection ends. For `always` and `time` only.
        case refuse
        /// `dark`: this connection never answers again and stays open; new ones work.
        case dark
    }

    enum Moment: Equatable {
        case always
        case requests(ClosedRange<Int>)
        case time(Range<Int64>)
    }

    struct Rule: Equatable {
        /// `nil` for all venues.
        let venue: VenueName?
        let moment: Moment
        let fault: Fault
    }

    let rules: [Rule]

    /// Nothing goes wrong.
    public static let none = FaultScript(rules: [])

    private init(rules: [Rule]) {
        self.rules = rules
    }

    /// - Parameter text: The script.
    /// - Throws: ``Failure`` for the first line that can't be understood.
    public init(_ text: String) throws(Failure) {
        var rules: [Rule] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.drop(while: \.isWhitespace)
            if line.isEmpty || line.first == "#" { continue }
            do throws(RuleParser.Failure) {
                var parser = RuleParser(line)
                rules.append(try parser.rule())
            } catch {
                throw Failure(description: "line \(index + 1): \(error.reason)")
            }
        }
        self.rules = rules
    }

    /// What happens to a request.
    /// - Parameters:
    ///   - venue: Whom it asks.
    ///   - number: Its number, from 1.
    ///   - milliseconds: Since the script was set.
    func fault(for venue: VenueName, request number: Int, at milliseconds: Int64) -> Fault? {
        rules.first { rule in
            guard rule.venue == nil || rule.venue == venue else { return false }
            switch rule.moment {
            case .always: return true
            case .requests(let range): return range.contains(number)
            case .time(let range): return range.contains(milliseconds)
            }
        }?.fault
    }

    /// Whether nobody listens for a venue now.
    func refuses(_ venue: VenueName, at milliseconds: Int64) -> Bool {
        fault(for: venue, request: 0, at: milliseconds) == .refuse
    }
}

private struct RuleParser {
    struct Failure: Error {
        let reason: String
    }

    private var rest: Substring

    init(_ line: Substring) {
        rest = line
    }

    mutating func rule() throws(Failure) -> FaultScript.Rule {
        let name = word()
        let venue = VenueName(rawValue: name)
        guard venue != nil || name == "*" else { throw Failure(reason: "unknown venue '\(name)'") }
        let moment = try moment()
        let fault = try fault()
        if fault == .refuse, case .requests = moment {
            throw Failure(reason: "'refuse' has no requests to count; use 'always' or 'time'")
        }
        return FaultScript.Rule(venue: venue, moment: moment, fault: fault)
    }

    private mutating func word() -> String {
        rest = rest.drop(while: \.isWhitespace)
        let word = rest.prefix { !$0.isWhitespace }
        rest = rest.dropFirst(word.count)
        return String(word)
    }

    private mutating func moment() throws(Failure) -> FaultScript.Moment {
        let kind = word()
        switch kind {
        case "always": return .always
        case "request":
            let (from, to) = try range(word()) { Int($0) }
            guard from > 0, to ?? from >= from else { throw Failure(reason: "requests are counted from 1") }
            return .requests(from...(to ?? .max))
        case "time":
            let (from, to) = try range(word(), Self.milliseconds)
            guard to ?? from >= from else { throw Failure(reason: "a time that ends before it begins") }
            return .time(from..<(to ?? .max))
        default: throw Failure(reason: "expected always, request or time, not '\(kind)'")
        }
    }

    /// `N`, `N-M` or `N-`, of which the last has no end.
    private func range<Value>(_ text: String, _ value: (String) -> Value?) throws(Failure) -> (Value, Value?) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let from = parts.first.flatMap(value) else { throw Failure(reason: "'\(text)' is no range") }
        if parts.count == 1 { return (from, from) }
        if parts[1].isEmpty { return (from, nil) }
        guard let to = value(parts[1]) else { throw Failure(reason: "'\(text)' is no range") }
        return (from, to)
    }

    private static func milliseconds(_ text: String) -> Int64? {
        if text.hasSuffix("ms") { return Int64(text.dropLast(2)) }
        if text.hasSuffix("s") { return Int64(text.dropLast(1)).map { $0 * 1000 } }
        return nil
    }

    private mutating func fault() throws(Failure) -> FaultScript.Fault {
        let kind = word()
        switch kind {
        case "status":
            guard let status = Int(word()), (100...599).contains(status) else { throw Failure(reason: "no status") }
            return try answer(status)
        case "delay":
            let text = word()
            guard let delay = Self.milliseconds(text) else { throw Failure(reason: "'\(text)' is no time") }
            return .delay(milliseconds: delay)
        case "stall-body": return .stallBody
        case "reset": return .reset
        case "refuse": return .refuse
        case "dark": return .dark
        default: throw Failure(reason: "unknown fault '\(kind)'")
        }
    }

    private mutating func answer(_ status: Int) throws(Failure) -> FaultScript.Fault {
        var retryAfter: Int?
        while true {
            let key = word()
            switch key {
            case "": return .answer(status: status, retryAfter: retryAfter, body: [])
            case "retry-after":
                guard let seconds = Int(word()) else { throw Failure(reason: "no seconds behind retry-after") }
                retryAfter = seconds
            case "body":
                let text = rest.drop(while: \.isWhitespace)
                return .answer(status: status, retryAfter: retryAfter, body: Array(text.utf8))
            case "file":
                let path = String(rest.drop(while: \.isWhitespace))
                guard let body = readFile(path) else { throw Failure(reason: "cannot read \(path)") }
                return .answer(status: status, retryAfter: retryAfter, body: body)
            default: throw Failure(reason: "unknown word '\(key)'")
            }
        }
    }
}

/// The whole file; `nil` where it can't be read.
func readFile(_ path: String) -> [UInt8]? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { return ferror(file) == 0 ? bytes : nil }
        bytes += buffer[..<count]
    }
}
