/// Which faults occur, and when: one rule per line. The first rule that matches applies.
///
///     # venue   when            fault
///     binance   request 3-5     status 429 body {"code":-1003}
///     binance   time 10s-20s    refuse
///     coinbase  always          delay 900ms
///     *         request 7       dark
///     kraken BTC/EUR request 3  status 500
///     coinbase candles request 2 status 429
///     binance   stream time 5s- silent
///
/// A pair after the venue limits a rule to requests for that pair. `candles` limits it to requests for candles; of the other rules, only
/// those about connections apply to candles. `stream` makes it a rule for WebSocket streams: its requests are the upgrades, and its
/// faults are those of ``StreamFault`` and a few of ``Fault``.
///
/// `when` is `always`, `request N`, `request N-M`, `request N-` (counted from 1 for each venue since the script was set) or
/// `time A-B` (since the script was set; `ms` or `s`; an open end is allowed). The faults are those of ``Fault``.
package struct FaultScript: Sendable, Equatable {
    /// An invalid script.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The line and the error in it.
        package let description: String
    }

    /// A certificate that a client must reject.
    package enum Certificate: String, Sendable {
        case expired
        /// It becomes valid later.
        case notYetValid = "not-yet-valid"
        /// It is for another host.
        case otherHost = "other-host"
        /// It is from another authority.
        case forged
    }

    /// The fault of a request or a connection.
    package enum Fault: Sendable, Equatable {
        /// `status CODE [retry-after SECONDS | retry-after-date SECONDS] [body TEXT | file PATH]`: this response instead of the price. In
        /// the text, `<now+5000>` is replaced by the time in five seconds, in milliseconds since 1970.
        case answer(status: Int, retryAfter: RetryAfter?, body: [UInt8])
        /// `delay 900ms`: the correct response, late.
        case delay(milliseconds: Int64)
        /// `drip 50ms`: the correct response, the body one byte at a time.
        case drip(milliseconds: Int64)
        /// `stall-body`: the head and half of the body, then silence.
        case stallBody
        /// `half-body`: the head and half of the body, then the end of the connection.
        case halfBody
        /// `wrong-length N`: a Content-Length that is larger than the body by N, or smaller if N is negative.
        case wrongLength(Int)
        /// `huge-body N`: a body of N bytes instead of the response.
        case hugeBody(Int)
        /// `bomb`: a small compressed body that expands to a large one.
        case bomb
        /// `redirect`: a redirect to the same address.
        case redirect
        /// `content-type TYPE`: the correct response with this content type.
        case contentType(String)
        /// `venue-clock +3600s`: the correct response from a venue whose clock is ahead, or behind with a minus sign.
        case venueClock(seconds: Int)
        /// `price 8200 | xFACTOR`: the correct response with this price, or with the price multiplied by FACTOR.
        case price(fixed: String?, factor: Double)
        /// `usdt 0.9`: the correct response with this price of one USDT in dollars. Only Kraken quotes it.
        case tether(String)
        /// `close`: closes the connection instead of a response.
        case close
        /// `reset`: resets the connection instead of a response.
        case reset
        /// `dark`: this connection stays open but never responds again; new ones work.
        case dark
        /// `refuse`: the port is closed, and every connection ends. Like the TLS faults, only with `always` and `time`.
        case refuse
        /// `tls-alert`: the handshake ends with internal_error. Only with TLS.
        case tlsAlert
        /// `certificate expired | not-yet-valid | other-host | forged`. Only with TLS.
        case certificate(Certificate)
        /// A fault that only streams have. Their rules can also have `price`, and as upgrade `status`, `redirect`, `reset`, `dark`.
        case stream(StreamFault)

        /// Whether the fault affects a connection, before any request is counted.
        var isOfConnections: Bool {
            switch self {
            case .refuse, .tlsAlert, .certificate: true
            default: false
            }
        }

        /// Whether the fault affects the market of all streams.
        var isOfMarket: Bool {
            switch self {
            case .stream(.burst), .stream(.maintenance): true
            default: false
            }
        }
    }

    /// A `Retry-After` header.
    package enum RetryAfter: Sendable, Equatable {
        /// In seconds.
        case seconds(Int)
        /// As a date, this many seconds from now.
        case date(inSeconds: Int)

        var text: String {
            switch self {
            case .seconds(let seconds): "\(seconds)"
            case .date(let seconds): VenueShape.httpDate(secondsFromNow: seconds)
            }
        }
    }

    /// When a rule applies: always, unless one of the two is set.
    struct Moment: Equatable {
        var requests: ClosedRange<Int>?
        var time: Range<Int64>?
    }

    /// The kind of requests that a rule applies to.
    enum Scope: Equatable {
        case prices, candles, stream
    }

    struct Rule: Equatable {
        /// `nil` for all venues.
        let venue: VenueName?
        /// `nil` for all pairs.
        let pair: Pair?
        var scope = Scope.prices
        let moment: Moment
        let fault: Fault
    }

    let rules: [Rule]

    package static let none = FaultScript(rules: [])

    private init(rules: [Rule]) {
        self.rules = rules
    }

    /// - Throws: ``Failure`` for the first invalid line.
    package init(_ text: String) throws(Failure) {
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

    /// The fault of a request or a stream; `nil` for none.
    /// - Parameters:
    ///   - number: The number of the request, from 1. No rule with `request` matches 0.
    ///   - pairs: The pairs that the request is for.
    ///   - numbers: The number of the request among those for each pair.
    ///   - scope: The kind of the request.
    ///   - milliseconds: The time since the script was set.
    func fault(
        for venue: VenueName, request number: Int, of pairs: [Pair] = [], _ numbers: [Pair: Int] = [:],
        scope: Scope = .prices, at milliseconds: Int64
    ) -> Fault? {
        rule(for: venue, at: milliseconds) { rule in
            if rule.scope != scope { return false }
            if let pair = rule.pair, !pairs.contains(pair) { return false }
            let counted = rule.pair.flatMap { numbers[$0] } ?? number
            return !rule.fault.isOfConnections && (rule.moment.requests?.contains(counted) ?? true)
        }
    }

    /// The current fault of a venue's connections; `nil` for none.
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
