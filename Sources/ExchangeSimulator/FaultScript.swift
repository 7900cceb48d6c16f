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

    /// A certificate that a client must not take.
    public enum Certificate: Sendable, Equatable {
        /// Its time is over.
        case expired
        /// Its time begins so many seconds after the script was set.
        case notYetValid(seconds: Int)
        /// It is for another host.
        case otherHost
        /// It is by another authority.
        case forged
    }

    /// What happens to a request, or to a connection.
    public enum Fault: Sendable, Equatable {
        /// `status CODE [retry-after SECONDS | retry-after-date SECONDS] [body TEXT | file PATH]`: this answer instead. In the
        /// text `<now+5000>` stands for the milliseconds since 1970 in five seconds.
        case answer(status: Int, retryAfter: RetryAfter?, body: [UInt8])
        /// `delay 900ms`: the right answer, late.
        case delay(milliseconds: Int64)
        /// `drip 50ms`: the right answer, a byte of the body at a time.
        case drip(milliseconds: Int64)
        /// `stall-body`: the head and half of the body, then silence.
        case stallBody
        /// `half-body`: the head and half of the body, then the end of the connection.
        case halfBody
        /// `wrong-length N`: a Content-Length that is so much more, or with a minus less, than the body has.
        case wrongLength(Int)
        /// `huge-body N`: so many bytes instead of an answer.
        case hugeBody(Int)
        /// `bomb`: a small compressed body that becomes a large one.
        case bomb
        /// `redirect`: to itself.
        case redirect
        /// `content-type TYPE`: the right answer, called something else.
        case contentType(String)
        /// `venue-clock +3600s`: the right answer, by a clock that is ahead, or with a minus behind.
        case venueClock(seconds: Int)
        /// `price 8200 | xFACTOR`: the right shape with this price in it, or with the price so many times as high.
        case price(fixed: String?, factor: Double)
        /// `usdt 0.9`: the right answer, with this many dollars for one USDT. Kraken alone tells that.
        case tether(String)
        /// `close`: the connection is closed instead of an answer.
        case close
        /// `reset`: the connection is reset instead of an answer.
        case reset
        /// `dark`: this connection never answers again and stays open; new ones work.
        case dark
        /// `refuse`: nobody listens, and every connection ends. For `always` and `time` only, as all below.
        case refuse
        /// `tls-alert`: the handshake ends with internal_error. With TLS only.
        case tlsAlert
        /// `certificate expired | not-yet-valid SECONDS | other-host | forged`. With TLS only.
        case certificate(Certificate)

        /// Whether it happens to a connection, before there is a request to count.
        var isOfConnections: Bool {
            switch self {
            case .refuse, .tlsAlert, .certificate: true
            default: false
            }
        }
    }

    /// A `Retry-After` header.
    public enum RetryAfter: Sendable, Equatable {
        /// In seconds.
        case seconds(Int)
        /// As a date, so many seconds from now.
        case date(inSeconds: Int)
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
            do throws(FaultRuleParser.Failure) {
                var parser = FaultRuleParser(line)
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
        rule(for: venue, at: milliseconds) {
            !$0.fault.isOfConnections && ($0.moment.requests?.contains(number) ?? true)
        }
    }

    /// What happens to the connections of a venue now.
    func connectionFault(for venue: VenueName, at milliseconds: Int64) -> Fault? {
        rule(for: venue, at: milliseconds) { $0.fault.isOfConnections }
    }

    private func rule(for venue: VenueName, at milliseconds: Int64, where fits: (Rule) -> Bool) -> Fault? {
        rules.first { rule in
            (rule.venue == nil || rule.venue == venue) && (rule.moment.time?.contains(milliseconds) ?? true)
                && fits(rule)
        }?.fault
    }
}

extension FaultScript.Moment {
    fileprivate var requests: ClosedRange<Int>? {
        if case .requests(let range) = self { range } else { nil }
    }

    fileprivate var time: Range<Int64>? {
        if case .time(let range) = self { range } else { nil }
    }
}
