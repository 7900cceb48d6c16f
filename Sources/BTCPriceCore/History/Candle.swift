/// The movement of the price in a span of time, from the ticks that had a valid price.
package struct Candle: Sendable, Hashable {
    package enum Step: String, Sendable, Hashable, CaseIterable, Comparable {
        case second
        case minute
        case hour
        /// A day in UTC.
        case day

        package var seconds: Int64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            case .day: 86_400
            }
        }

        package var minutes: Int64 { seconds / 60 }

        package static func < (left: Step, right: Step) -> Bool { left.seconds < right.seconds }

        /// The start of the candle that contains a moment, in Unix seconds.
        package func start(of second: Int64) -> Int64 {
            let rest = second % seconds
            return second - (rest < 0 ? rest + seconds : rest)
        }
    }

    /// More ticks than a day can have at the shortest interval.
    package static let mostTicks: Int64 = 1_000_000

    /// The origin of a candle that this daemon has made from its own prices.
    package static let own = "own"
    /// The origin of a candle that was made from candles with different origins.
    package static let mixed = "mixed"

    /// Unix seconds, a multiple of the step.
    package var start: Int64
    package var open: Price
    package var high: Price
    package var low: Price
    package var close: Price
    /// The number of ticks in it; 0 for an exchange's candle.
    package var ticks: Int64
    /// The number of those ticks that had a valid price.
    package var fresh: Int64
    /// ``own``, ``mixed``, or the exchange whose candle it is.
    package var origin: String
    /// How many seconds of its span it covers. `nil` if that is not known, or if it is enough: five sixths of a minute, or all minutes of a
    /// longer span.
    package var covered: Int64?
    /// The number of valid ticks whose price was in doubt; `nil` if not known. Such prices count only if there are no others.
    package var doubtful: Int64?
    /// The number of valid ticks whose price only one of several sources gave; `nil` if not known.
    package var single: Int64?

    package init(
        start: Int64, open: Price, high: Price, low: Price, close: Price, ticks: Int64 = 0, fresh: Int64 = 0,
        origin: String = Candle.own, covered: Int64? = nil, doubtful: Int64? = nil, single: Int64? = nil
    ) {
        self.start = start
        self.open = open
        self.high = high
        self.low = low
        self.close = close
        self.ticks = ticks
        self.fresh = fresh
        self.origin = origin
        self.covered = covered
        self.doubtful = doubtful
        self.single = single
    }

    /// Makes a candle from external data: from an exchange, a database or a message.
    /// - Parameter currency: The currency of its prices; `nil` if it is not known, to accept the prices of any currency.
    /// - Returns: `nil` if it is not a valid candle: a price is outside of ``Currency/prices``, the four are out of order, a count is
    ///   negative or above ``mostTicks``, there are more valid ticks than ticks or more in doubt or single than valid ones, it covers nothing
    ///   or more than a day, or the start is outside of ``Timestamp/possibleMilliseconds``.
    package init?(
        checkedStart start: Int64, open: Price, high: Price, low: Price, close: Price, ticks: Int64 = 0,
        fresh: Int64 = 0, origin: String, covered: Int64? = nil, doubtful: Int64? = nil, single: Int64? = nil,
        in currency: Currency?
    ) {
        let prices = currency?.prices ?? Currency.pricesOfAny
        guard prices.contains(low), prices.contains(high), low <= min(open, close), high >= max(open, close),
            fresh >= 0, ticks >= fresh, ticks <= Self.mostTicks, start >= 0,
            start <= Timestamp.possibleMilliseconds.upperBound / 1000,
            (1...Step.day.seconds).contains(covered ?? 1), (0...fresh).contains(doubtful ?? 0),
            (0...fresh).contains(single ?? 0)
        else { return nil }
        self.init(
            start: start, open: open, high: high, low: low, close: close, ticks: ticks, fresh: fresh, origin: origin,
            covered: covered, doubtful: doubtful, single: single)
    }

    package init(start: Int64, _ price: Price, isInDoubt: Bool = false, isSingle: Bool = false) {
        self.init(
            start: start, open: price, high: price, low: price, close: price, ticks: 1, fresh: 1,
            doubtful: isInDoubt ? 1 : 0, single: isSingle ? 1 : 0)
    }

    /// The whole minutes of ``covered``; `nil` for a minute.
    package var coveredMinutes: Int64? { covered.flatMap { $0 < 60 ? nil : $0 / 60 } }

    /// Whether all ticks that it was made of were in doubt.
    package var isInDoubt: Bool {
        (origin == Self.own || isDerived) && fresh > 0 && (doubtful ?? 0) >= fresh
    }

    /// The same with all its ticks in doubt.
    package var inDoubt: Candle {
        var doubted = self
        doubted.fresh = max(1, fresh)
        (doubted.ticks, doubted.doubtful) = (max(ticks, doubted.fresh), doubted.fresh)
        return doubted
    }

    /// Whether the daemon itself has seen a part of it.
    package var isPartlyOwn: Bool { origin == Self.own || origin == Self.mixed }

    /// Adds the rest of a minute, which is another candle because the daemon was restarted in it.
    package mutating func append(_ rest: Candle) {
        let seconds = covered.flatMap { known in rest.covered.map { known + $0 } }
        add(rest)
        covered = seconds.flatMap { Self.covered($0, of: .minute) }
    }

    /// An exchange's candle of the same span with what the daemon itself has seen of it. Each price stays within the range of both.
    package func beside(_ own: Candle) -> Candle {
        var both = own
        if own.isInDoubt {
            (both.high, both.low) = (high, low)
        } else {
            (both.high, both.low) = (max(high, own.high), min(low, own.low))
        }
        (both.open, both.close, both.origin, both.covered) = (open, close, Self.mixed, nil)
        return both
    }

    /// Adds a later candle. If one of the two is in doubt, the prices are those of the other one.
    package mutating func add(_ later: Candle) {
        if isInDoubt == later.isInDoubt {
            high = max(high, later.high)
            low = min(low, later.low)
            close = later.close
        } else if isInDoubt {
            (start, open, high, low, close) = (later.start, later.open, later.high, later.low, later.close)
        }
        ticks += later.ticks
        fresh += later.fresh
        if let more = later.doubtful { doubtful = (doubtful ?? 0) + more }
        if let more = later.single { single = (single ?? 0) + more }
        if origin != later.origin { origin = Self.mixed }
    }

    /// How much of a span is enough to speak of all of it: five sixths.
    static func enough(of span: Int64) -> Int64 { (span * 5 + 5) / 6 }

    package static func isEnough(_ known: Int64, of span: Int64) -> Bool { known >= enough(of: span) }

    /// Whether it covers enough of its span.
    package func isEnough(_ step: Step) -> Bool { covered.map { Self.isEnough($0, of: step.seconds) } ?? true }

    /// Whether an exchange's candle says more of its span: it covers too little, or all of it is in doubt.
    package func needsCompletion(_ step: Step) -> Bool { !isEnough(step) || isInDoubt }

    /// The value of ``covered`` for this many seconds of a candle.
    package static func covered(_ seconds: Int64, of step: Step) -> Int64? {
        seconds < (step == .minute ? enough(of: step.seconds) : step.seconds) ? seconds : nil
    }

    /// Makes the candle of a span from shorter ones.
    ///
    /// If not enough of its minutes are known, it is made only of those that the daemon itself has seen.
    /// - Parameters:
    ///   - parts: All that are known, from the oldest to the newest.
    ///   - step: The step of the parts: a minute or longer.
    ///   - span: Unix seconds.
    ///   - now: Unix seconds. Later minutes can't be known yet.
    /// - Returns: `nil` if nothing can be said about the span.
    package init?(_ parts: [Candle], of step: Step, in span: Range<Int64>, at now: Int64) {
        let covered = { (parts: [Candle]) in parts.reduce(0) { $0 + ($1.covered ?? step.seconds) } }
        let elapsed = (min(now, span.upperBound) - span.lowerBound + 59) / 60 * 60
        let used = Self.isEnough(covered(parts), of: elapsed) ? parts : parts.filter(\.isPartlyOwn)
        guard var whole = used.whole else { return nil }
        whole.start = span.lowerBound
        // At least a minute, which is the unit of a longer span.
        let seconds = max(60, covered(used))
        whole.covered = seconds < span.upperBound - span.lowerBound ? seconds : nil
        self = whole
    }

    /// Makes candles of a longer step; see ``init(_:of:in:at:)``.
    package static func merged(_ parts: [Candle], of step: Step, to longer: Step, at now: Int64) -> [Candle] {
        Dictionary(grouping: parts) { longer.start(of: $0.start) }.sorted { $0.key < $1.key }.compactMap {
            Candle($0.value, of: step, in: $0.key..<$0.key + longer.seconds, at: now)
        }
    }
}

extension Sequence<Candle> {
    /// One candle of all, from the oldest to the newest; `nil` if there are none.
    var whole: Candle? {
        reduce(into: nil) { whole, part in
            if whole == nil { whole = part } else { whole?.add(part) }
        }
    }
}
