import BTCPriceCore
import BTCPriceFeature

/// Checks the prices against all alerts. A pure value.
///
/// If no price was checked for a while, because this program, the machine or the daemon was off, the alerts of the currency wait until the
/// history says what happened in between, for at most ``Bounds/patience``.
struct AlertKeeper: Sendable {
    enum Bounds {
        /// The shortest time without a price that is looked up in the history: its candles are minutes.
        static let gap: Int64 = 90_000
        /// The longest time that is looked up.
        static let longest: Int64 = 7 * 86_400_000
        /// How long the alerts wait until the daemon has filled the gap.
        static let patience: Int64 = 600_000
        /// How often the history is requested while they wait.
        static let retry: Int64 = 30_000
        /// A state is current for so long, or two intervals if that is longer.
        static let silence: Int64 = 5_000
    }

    /// A time in which no price was checked.
    struct Gap: Sendable, Hashable {
        let currency: String
        let from: BootTime
        /// From when on its history is requested: changes are measured from earlier prices.
        let since: BootTime
        let found: BootTime
        /// When the history is requested next.
        var next: BootTime
    }

    private struct Watched {
        var alert: Alert
        var evaluator: AlertEvaluator
        var lastMessage: String?
    }

    private struct Current {
        var state: PriceState
        var until: BootTime
    }

    private var watched: [Watched] = []
    private var current: [String: Current] = [:]
    /// When a fresh price was last checked.
    private var seen: [String: BootTime] = [:]
    /// What was kept of alerts that have not been read yet, by their names.
    private var kept: [String: AlertRecord] = [:]
    /// When a price of a currency was last checked before the start, until one is checked: the clock may be set only then.
    private var keptSeen: [String: Timestamp] = [:]
    /// When time was last checked.
    private var lastTime: BootTime?
    /// The alerts that tell of nothing.
    var paused: Set<String> = []
    private(set) var gaps: [Gap] = []
    /// Changes when something has to be saved.
    private(set) var revision = 0

    var alerts: [Alert] { watched.map(\.alert) }

    // MARK: - Alerts

    /// Takes in what was kept, at the start.
    mutating func restore(_ records: AlertRecords) {
        kept = Dictionary(records.alerts.map { ($0.name, $0) }) { first, _ in first }
        keptSeen = Dictionary(records.seen.map { ($0.currency, $0.time) }) { first, _ in first }
    }

    /// Takes in the alerts of the file. What is known of those with the same identity stays.
    /// - Parameter names: Those of all alerts in the file: what was kept of one with a mistake stays kept.
    mutating func set(_ alerts: [Alert], names: [String], at now: ObservationTime) {
        let known = Dictionary(watched.map { ($0.alert.name, $0) }) { first, _ in first }
        watched = alerts.map { alert in
            if var same = known[alert.name], same.alert.identity == alert.identity {
                // Another way to tell it, or another pause.
                (same.alert, same.evaluator.rule) = (alert, alert.rule)
                return same
            }
            guard let record = kept.removeValue(forKey: alert.name), record.identity == alert.identity else {
                return Watched(alert: alert, evaluator: AlertEvaluator(alert.rule))
            }
            var state = AlertState(position: record.position)
            state.lastFired = record.lastFired.map { Self.boottime($0, now).milliseconds }
            state.base = record.base.map { Self.boottime($0, now).milliseconds }
            (state.heldBack, state.isOver) = (Int(clamping: record.heldBack), record.isOver)
            return Watched(
                alert: alert, evaluator: AlertEvaluator(alert.rule, state), lastMessage: record.lastMessage)
        }
        kept = kept.filter { names.contains($0.key) }
        revision += 1
    }

    /// What is to be kept.
    func records(at now: ObservationTime) -> (alerts: [AlertRecord], seen: [SeenCurrency]) {
        let wall = { (time: Int64?) in time.map { now.wallTime(of: BootTime(milliseconds: $0)) } }
        let alerts = watched.map { each in
            let state = each.evaluator.state
            return AlertRecord(
                name: each.alert.name, identity: each.alert.identity, position: state.position,
                lastFired: wall(state.lastFired), lastMessage: each.lastMessage, heldBack: Int64(state.heldBack),
                isOver: state.isOver, base: wall(state.base))
        }
        let times = seen.map { currency, time in
            // What happened since then is not known yet.
            (currency, now.wallTime(of: gaps.first { $0.currency == currency }?.from ?? time))
        }
        let all = keptSeen.merging(times) { $1 }.sorted { $0.key < $1.key }
        return (
            alerts + kept.values.sorted { $0.name < $1.name },
            all.map { SeenCurrency(currency: $0.key, time: $0.value) }
        )
    }

    mutating func note(_ message: String, of name: String) {
        guard let index = watched.firstIndex(where: { $0.alert.name == name }) else { return }
        watched[index].lastMessage = message
        revision += 1
    }

    // MARK: - Prices

    /// Takes in a state.
    /// - Parameter interval: The time between two ticks, milliseconds.
    mutating func see(_ state: PriceState, interval: Int64, at now: ObservationTime) -> [Firing] {
        wake(at: now.boottime)
        current[state.currency] = Current(state: state, until: now.boottime + max(Bounds.silence, 2 * interval))
        guard state.freshness == .fresh, state.quote != nil else { return check(state.currency, at: now) }
        let (span, before) = (span(state.currency), keptSeen.removeValue(forKey: state.currency))
        if let before { seen[state.currency] = Self.boottime(before, now) }
        // A change is measured from the prices before the start.
        let isUnprimed = before != nil && span > 0
        if let last = seen[state.currency], isUnprimed || now.boottime - last > max(Bounds.gap, 3 * interval),
            !gaps.contains(where: { $0.currency == state.currency }), hasMissed(state.currency)
        {
            let from = max(last, now.boottime - Bounds.longest)
            gaps.append(
                Gap(
                    currency: state.currency, from: from, since: from - span, found: now.boottime, next: now.boottime))
        }
        seen[state.currency] = now.boottime
        return check(state.currency, at: now)
    }

    /// The daemon can't be reached.
    mutating func lose() { for currency in current.keys { current[currency]?.until = .min } }

    /// Checks what time alone changes. To be called once a second.
    mutating func pass(at now: ObservationTime) -> [Firing] {
        wake(at: now.boottime)
        var firings: [Firing] = []
        for index in watched.indices where watched[index].alert.rule.isOfTime {
            let state = state(of: watched[index].alert.currency, at: now)
            if state.freshness != .fresh { firings += fire(index, state, at: now) }
        }
        return firings
    }

    /// If the machine has slept, what lasts begins anew, but for the alerts that the history is looked up for.
    private mutating func wake(at now: BootTime) {
        defer { lastTime = now }
        guard let lastTime, now - lastTime > Bounds.gap else { return }
        for index in watched.indices where !watched[index].alert.rule.isOfPrice {
            watched[index].evaluator = AlertEvaluator(watched[index].alert.rule, watched[index].evaluator.state)
        }
    }

    private mutating func check(_ currency: String, at now: ObservationTime) -> [Firing] {
        let state = state(of: currency, at: now)
        let waits = gaps.contains { $0.currency == currency }
        return watched.indices.flatMap { index in
            let alert = watched[index].alert
            return alert.currency != currency || waits && alert.rule.isOfPrice ? [] : fire(index, state, at: now)
        }
    }

    private func state(of currency: String, at now: ObservationTime) -> PriceState {
        guard let known = current[currency] else {
            return .empty(of: Currency(rawValue: currency) ?? .usd)
        }
        var state = known.state
        if now.boottime > known.until, state.freshness == .fresh { state.becomeStale(because: nil) }
        return state
    }

    private mutating func fire(_ index: Int, _ state: PriceState, at now: ObservationTime) -> [Firing] {
        let before = watched[index].evaluator.state
        let isPaused = paused.contains(watched[index].alert.name)
        let firing = watched[index].evaluator.see(AlertReading(state, at: now.boottime), isMuted: isPaused)
        if watched[index].evaluator.state != before { revision += 1 }
        return firing.map {
            [
                Firing(
                    alert: watched[index].alert, moment: .seen(now.wallTime(of: BootTime(milliseconds: $0.since))),
                    wasUnconfirmed: false, heldBack: $0.heldBack, move: $0.move, state: state,
                    time: now.wall)
            ]
        } ?? []
    }

    /// Whether an alert has checked prices of a currency before.
    private func hasMissed(_ currency: String) -> Bool {
        watched.contains {
            $0.alert.currency == currency && $0.alert.rule.isOfPrice && $0.evaluator.state.position != nil
        }
    }

    /// The longest time in which a change is measured, milliseconds.
    private func span(_ currency: String) -> Int64 {
        watched.filter { $0.alert.currency == currency }.compactMap(\.alert.rule.within).max()?.wholeMilliseconds ?? 0
    }

    // MARK: - Gaps

    /// The gap whose history is to be requested now.
    mutating func nextGap(at now: BootTime) -> Gap? {
        // Without a fresh price, what is now is not known either.
        guard
            let index = gaps.firstIndex(where: { gap in
                gap.next <= now
                    && current[gap.currency].map { $0.state.freshness == .fresh && now <= $0.until } ?? false
            })
        else { return nil }
        gaps[index].next = now + Bounds.retry
        return gaps[index]
    }

    /// Takes in what the history says of a gap.
    /// - Parameter candles: Its minutes, from the oldest to the newest; `nil` if there is no history.
    mutating func fill(_ gap: Gap, _ candles: [Candle]?, at now: ObservationTime) -> [Firing] {
        let from = now.wallTime(of: gap.from)
        // The minute in which the gap begins has prices that were checked.
        let (known, missed) = (candles ?? []).reduce(into: ([Candle](), [Candle]())) { parts, candle in
            if candle.start * 1000 < from.milliseconds { parts.0.append(candle) } else { parts.1.append(candle) }
        }
        // The last minutes can't be requested yet, and those in which the daemon stopped and started are known in part.
        let end = Candle.Step.minute.start(of: now.wallTime(of: gap.found).wholeSeconds - Backfill.margin)
        let coverage = HistoryCoverage(from: from, to: Timestamp(milliseconds: end * 1000))
        let isPoor = coverage.isPoor(coverage.seconds(in: known + missed, .minute), .minute)
        guard candles == nil || !isPoor || now.boottime - gap.found >= Bounds.patience else { return [] }
        gaps.removeAll { $0.currency == gap.currency }
        revision += 1
        let state = state(of: gap.currency, at: now)
        let readings = (
            known: known.flatMap { AlertReading.readings(of: $0, at: now) },
            missed: missed.flatMap { AlertReading.readings(of: $0, at: now) }
        )
        return watched.indices.flatMap { index in
            let alert = watched[index].alert
            guard alert.currency == gap.currency, alert.rule.isOfPrice, !watched[index].evaluator.state.isOver else {
                return [] as [Firing]
            }
            watched[index].evaluator.interrupt()
            let (base, isPaused) = (watched[index].evaluator.state.base ?? .min, paused.contains(alert.name))
            if watched[index].evaluator.isUnprimed {
                // The minute in which the base is has prices before it.
                for reading in readings.known where reading.time - 60_000 > base {
                    watched[index].evaluator.prime(reading)
                }
            }
            var missed: [AlertFiring] = []
            // A new one begins now.
            for reading in readings.missed where watched[index].evaluator.state.position != nil {
                if let firing = watched[index].evaluator.see(reading, isMuted: isPaused) { missed.append(firing) }
            }
            let present = AlertReading(state, at: now.boottime)
            let live = watched[index].evaluator.see(present, isMuted: isPaused)
            guard let firing = missed.first ?? live else { return [] }
            let since = now.wallTime(of: BootTime(milliseconds: firing.since))
            let isOver = !missed.isEmpty && alert.rule.isBound && !watched[index].evaluator.isBeyond(present)
            let isShort = gap.found - gap.from <= Bounds.gap
            let moment: Firing.Moment =
                if isShort, !isOver {
                    .seen(since)
                } else if missed.isEmpty {
                    .between(from, now.wall, isOver: false)
                } else if let last = Self.lastKnown(before: since, from, candles ?? []) {
                    .between(last, since, isOver: isOver)
                } else {
                    .missed(since, isOver: isOver)
                }
            return [
                Firing(
                    alert: alert, moment: moment, wasUnconfirmed: !missed.isEmpty && firing.isUnconfirmed,
                    heldBack: firing.heldBack + max(0, missed.count - 1), move: firing.move, state: state,
                    time: now.wall)
            ]
        }
    }

    /// Until when prices are known before a time; `nil` if that is less than a minute before it.
    /// - Parameter from: Until when prices were checked.
    private static func lastKnown(before time: Timestamp, _ from: Timestamp, _ candles: [Candle]) -> Timestamp? {
        let start = Candle.Step.minute.start(of: time.wholeSeconds)
        let end = candles.last { $0.start + 60 <= start }.map { ($0.start + 60) * 1000 }
        let last = max(from.milliseconds, end ?? .min)
        return last <= (start - 60) * 1000 ? Timestamp(milliseconds: last) : nil
    }

    // MARK: - Clocks

    private static func boottime(_ time: Timestamp, _ now: ObservationTime) -> BootTime {
        now.boottime - max(0, now.wall.milliseconds - time.milliseconds)
    }
}

extension AlertRule {
    /// Whether it is about what prices are, which the history knows.
    var isOfPrice: Bool {
        switch condition {
        case .above, .below, .change: true
        case .stale, .unsure: false
        }
    }

    fileprivate var within: Duration? {
        if case .change(_, let within) = condition { return within }
        return nil
    }

    fileprivate var isBound: Bool {
        switch condition {
        case .above, .below: true
        case .change, .stale, .unsure: false
        }
    }

    /// Whether it can begin to hold without a new state, or without any.
    var isOfTime: Bool {
        if case .stale = condition { return true }
        return false
    }
}

extension AlertReading {
    init(_ state: PriceState, at now: BootTime) {
        self.init(at: now.milliseconds, state.freshness == .fresh ? state.quote?.value : nil)
        confirmation = state.confirmation ?? .single
        isInDoubt = state.doubt == "in doubt"
        if let price, let plusMinus = state.standing.uncertainty?.plusMinus {
            uncertainty = (plusMinus * 100).divided(by: price, places: 4)
        }
    }

    /// What a candle says: of the daemon's own the four prices, of another one the last, which no other exchange confirms.
    fileprivate static func readings(of candle: Candle, at now: ObservationTime) -> [AlertReading] {
        let isOwn = candle.origin == Candle.own
        // The order of the lowest and the highest price is not known. The last one was on the way to the close.
        let turns = candle.close > candle.open ? [candle.low, candle.high] : [candle.high, candle.low]
        let prices = isOwn ? [candle.open] + turns + [candle.close] : [candle.close]
        return prices.enumerated().map { index, price in
            let second = candle.start + (isOwn ? Int64(index) * 19 : 59)
            let age = max(0, now.wall.milliseconds - second * 1000)
            var reading = AlertReading(at: (now.boottime - age).milliseconds, price)
            reading.confirmation =
                candle.isInDoubt ? .unconfirmed : isOwn && (candle.single ?? 0) == 0 ? .confirmed : .single
            return reading
        }
    }
}
