import FoundationEssentials

/// Reads one line of a fault script.
struct FaultRuleParser {
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
        var pair: Pair?
        var scope = FaultScript.Scope.prices
        if next.contains("/") {
            let name = word()
            pair = Pair(rawValue: name)
            guard pair != nil else { throw Failure(reason: "unknown pair '\(name)'") }
        }
        if next == "candles" || next == "stream" { scope = word() == "stream" ? .stream : .candles }
        let moment = try moment()
        let kind = word()
        let fault = try scope == .stream ? streamFault(kind) : fault(kind)
        if fault.isOfConnections || fault.isOfMarket, moment.requests != nil {
            throw Failure(reason: "'\(kind)' has no requests to count; use 'always' or 'time'")
        }
        if fault.isOfConnections, pair != nil || scope != .prices { throw Failure(reason: "'\(kind)' is of no pair") }
        return FaultScript.Rule(venue: venue, pair: pair, scope: scope, moment: moment, fault: fault)
    }

    private var next: Substring { rest.drop(while: \.isWhitespace).prefix { !$0.isWhitespace } }

    private mutating func word() -> String {
        rest = rest.drop(while: \.isWhitespace)
        let word = rest.prefix { !$0.isWhitespace }
        rest = rest.dropFirst(word.count)
        return String(word)
    }

    private mutating func moment() throws(Failure) -> FaultScript.Moment {
        let kind = word()
        switch kind {
        case "always": return FaultScript.Moment()
        case "request":
            let (from, to) = try range(word()) { Int($0) }
            guard from > 0, to ?? from >= from else { throw Failure(reason: "requests are counted from 1") }
            return FaultScript.Moment(requests: from...(to ?? .max))
        case "time":
            let (from, to) = try range(word(), Self.milliseconds)
            guard to ?? from >= from else { throw Failure(reason: "a time that ends before it begins") }
            return FaultScript.Moment(time: from..<(to ?? .max))
        default: throw Failure(reason: "expected always, request or time, not '\(kind)'")
        }
    }

    /// `N`, `N-M` or `N-`. The last form has no end.
    private func range<Value>(_ text: String, _ value: (String) -> Value?) throws(Failure) -> (Value, Value?) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let from = parts.first.flatMap(value) else { throw Failure(reason: "'\(text)' is not a valid range") }
        if parts.count == 1 { return (from, from) }
        if parts[1].isEmpty { return (from, nil) }
        guard let to = value(parts[1]) else { throw Failure(reason: "'\(text)' is not a valid range") }
        return (from, to)
    }

    private static func milliseconds(_ text: String) -> Int64? {
        guard text.hasSuffix("s") else { return nil }
        let unit: Int64 = text.hasSuffix("ms") ? 1 : 1000
        let number = Int64(text.dropLast(unit == 1 ? 2 : 1))
        // What is computed with it does not overflow.
        return number.flatMap { (-1 << 32...1 << 32).contains($0) ? $0 * unit : nil }
    }

    private mutating func fault(_ kind: String) throws(Failure) -> FaultScript.Fault {
        switch kind {
        case "status": return try answer(number(in: 100...599, what: "status"))
        case "delay": return .delay(milliseconds: try time())
        case "drip": return .drip(milliseconds: try time())
        case "stall-body": return .stallBody
        case "half-body": return .halfBody
        case "wrong-length": return .wrongLength(try number(in: -1_000_000...1_000_000, what: "length"))
        case "huge-body": return .hugeBody(try number(in: 1...1_000_000_000, what: "length"))
        case "bomb": return .bomb
        case "redirect": return .redirect
        case "content-type": return .contentType(word())
        case "venue-clock": return .venueClock(seconds: Int(try time(sign: true) / 1000))
        case "price": return try price()
        case "usdt":
            guard case .price(let rate?, _) = try price() else { throw Failure(reason: "no rate") }
            return .tether(rate)
        case "close": return .close
        case "reset": return .reset
        case "dark": return .dark
        case "refuse": return .refuse
        case "tls-alert": return .tlsAlert
        case "certificate": return .certificate(try certificate())
        default: throw Failure(reason: "unknown fault '\(kind)'")
        }
    }

    /// The faults of a stream that have no argument.
    private static let plainOfStream: [String: StreamFault] = [
        "bad-accept": .badAccept, "with-101": .with101, "ack-empty": .ackEmpty,
        "refuse-subscription": .refuseSubscription, "silent": .silent, "mute": .mute, "maintenance": .maintenance,
        "repeat": .repeats, "wrong-pair": .wrongPair, "cut": .cut, "half-close": .halfClose, "bytes": .bytes,
        "fragments": .fragments, "ping-flood": .pingFlood, "big-ping": .bigPing, "masked": .masked,
        "rsv": .reservedBit, "opcode": .reservedOpcode, "bad-utf8": .badUTF8, "garbage": .garbage,
    ]

    private mutating func streamFault(_ kind: String) throws(Failure) -> FaultScript.Fault {
        let fault: StreamFault
        switch kind {
        case "status", "redirect", "reset", "dark", "price": return try self.fault(kind)
        case "burst": fault = .burst(try number(in: 1...100_000, what: "number of trades"))
        case "lag": fault = .lag(milliseconds: try time())
        case "close":
            let code = try number(in: 0...65_535, what: "code")
            let reason = String(rest.drop(while: \.isWhitespace))
            guard reason.utf8.count <= 123 else { throw Failure(reason: "a reason of more than 123 bytes") }
            fault = .close(code: UInt16(code), reason: reason)
        case "huge": fault = .huge(try number(in: 16...100_000_000, what: "length"))
        default:
            guard let plain = Self.plainOfStream[kind] else {
                throw Failure(reason: "unknown fault '\(kind)' of a stream")
            }
            fault = plain
        }
        return .stream(fault)
    }

    private mutating func number(in range: ClosedRange<Int>, what: String) throws(Failure) -> Int {
        guard let number = Int(word()), range.contains(number) else { throw Failure(reason: "no \(what)") }
        return number
    }

    private mutating func time(sign: Bool = false) throws(Failure) -> Int64 {
        let text = word()
        guard let time = Self.milliseconds(text), sign || time >= 0 else {
            throw Failure(reason: "'\(text)' is not a valid time")
        }
        return time
    }

    private mutating func price() throws(Failure) -> FaultScript.Fault {
        let text = word()
        if text.first == "x", let factor = Double(text.dropFirst()), factor.isFinite {
            return .price(fixed: nil, factor: factor)
        }
        guard !text.isEmpty, text.allSatisfy({ $0.isASCII && ($0.isNumber || "-.".contains($0)) }) else {
            throw Failure(reason: "'\(text)' is not a valid price")
        }
        return .price(fixed: text, factor: 1)
    }

    private mutating func certificate() throws(Failure) -> FaultScript.Certificate {
        let name = word()
        guard let certificate = FaultScript.Certificate(rawValue: name) else {
            throw Failure(reason: "unknown certificate '\(name)'")
        }
        return certificate
    }

    private mutating func answer(_ status: Int) throws(Failure) -> FaultScript.Fault {
        var retryAfter: FaultScript.RetryAfter?
        while true {
            let key = word()
            switch key {
            case "": return .answer(status: status, retryAfter: retryAfter, body: [])
            case "retry-after", "retry-after-date":
                guard let seconds = Int(word()) else { throw Failure(reason: "no seconds behind \(key)") }
                retryAfter = key == "retry-after" ? .seconds(seconds) : .date(inSeconds: seconds)
            case "body":
                let text = rest.drop(while: \.isWhitespace)
                return .answer(status: status, retryAfter: retryAfter, body: Array(text.utf8))
            case "file":
                let path = String(rest.drop(while: \.isWhitespace))
                guard let body = FileManager.default.contents(atPath: path) else {
                    throw Failure(reason: "cannot read \(path)")
                }
                return .answer(status: status, retryAfter: retryAfter, body: Array(body))
            default: throw Failure(reason: "unknown word '\(key)'")
            }
        }
    }
}
