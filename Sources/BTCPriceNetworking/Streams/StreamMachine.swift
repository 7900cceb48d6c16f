package import BTCPriceCore

/// Manages the connections to one exchange's stream, and determines what its messages prove. A pure value; all times are in milliseconds.
///
/// A connection that must be replaced is kept until the next one has brought a price. A market's price counts only while it is proven
/// to be the newest one: by a price, by the number of the newest trade, or by traffic, as the exchange allows
/// (``StreamSource/Bounds``). Pings and pongs prove nothing.
struct StreamMachine: Sendable {
    /// What to do. Actions are performed in the order in which they are returned.
    enum Action: Sendable, Equatable {
        /// Open a connection with this number to an address.
        case open(Int, url: String)
        case send(String, Int)
        case close(Int)
        /// The price of a market has changed, or is available again.
        case changed(Market)
        case report(StreamEvent)
        /// Store this record for the next run.
        case keep(StreamRecord)
    }

    /// What is due at a certain time.
    enum Deadline: Sendable, Equatable {
        /// The next attempt to open a connection.
        case retry
        /// A connection is not open in time, its subscription not acknowledged, or it has brought no price.
        case opening(Int)
        case acknowledgement(Int)
        case firstData(Int)
        /// No message has come for too long.
        case silence(Int)
        case heartbeat(Int)
        case heartbeatResponse(Int)
        /// A connection is old enough to be replaced.
        case retirement(Int)
        /// The stream has not shown a price that a request has shown, or a trade that the exchange has announced.
        case suspicion(Market)
        /// A market's messages are late.
        case lag(Market)
    }

    /// The limits. Times are in milliseconds.
    enum Bounds {
        /// The longest time from the name lookup to the response with status 101.
        static let opening: Int64 = 5000
        static let acknowledgement: Int64 = 10_000
        /// How long a price counts after it was proven: a heartbeat a second, half a second from the read by which it is dated, and a
        /// quarter for its delays.
        static let proof: Int64 = 1750
        /// A request that shows another price makes the stream suspect if the last trade came more than this before the response's oldest
        /// possible time.
        static let before: Int64 = 1000
        /// How long a suspected stream has to catch up.
        static let after: Int64 = 2000
        /// The same after the exchange has announced the number of a trade that the stream has not shown. Coinbase may drop messages.
        static let afterNumber: Int64 = 10_000
        /// A connection that announces its end sooner than this after its first price is not replaced: a new one would announce the same.
        static let leaving: Int64 = 5000
        /// The maximum age of a message by its own time while the usual delay is unknown. An older one is not a sample, and proves nothing.
        static let oldestSample: Int64 = 5000
        /// How far ahead of this machine's clock a first price may be.
        static let ahead: Int64 = 60_000
        /// A trade that is older than the last one by less than this is a repetition. If by more, the last one's time was wrong.
        static let repeated: Int64 = 600_000
        /// How late messages may be, and for how long.
        static let lag: Int64 = 2000
        static let lagLasts: Int64 = 3000
        /// A stream that lags twice within this time is in cooldown for the same time.
        static let lagRest: Int64 = 300_000
        /// What a connection may bring, control frames and fragments included. The busiest second of the recorded minutes has 735 trades.
        static let traffic = TrafficLimit(messages: 20_000, bytes: 20_000 * 512)
    }

    private enum Phase: Sendable, Equatable { case opening, subscribing, live }

    private struct Link: Sendable {
        let id: Int
        let begun: Int64
        let retirement: Int64?
        var phase = Phase.opening
        var opened: Int64 = 0
        var unacknowledged: Set<Market> = []
        var refused: Set<Market> = []
        /// When the last message came.
        var lastMessage: Int64 = 0
        var traffic = Bounds.traffic
        /// When the first price came.
        var dataSince: Int64?
        var heartbeatSent: Int64?
        var lastHeartbeat: Int64 = 0
        /// Whether it is to be replaced.
        var isLeaving = false
    }

    private struct Feed: Sendable {
        var trade: StreamTrade?
        /// When it arrived, and when it was last proven to be the newest one.
        var arrived: Int64 = 0
        var proven: Int64?
        /// Until when the stream has to show a price that a request has shown, and a trade whose number was announced.
        var suspected: Int64?
        var suspectedByNumber: (number: Int64, until: Int64)?
        var lag = LagMeter()
        /// Since when messages are late, and whether there was more than one.
        var late: (since: Int64, isAgain: Bool)?
        /// Whether this connection has brought a price.
        var isKnown = false

        /// Forgets what the previous connection has proven. Trades older than the last one are still rejected.
        mutating func begin() { (proven, suspected, suspectedByNumber, late, isKnown) = (nil, nil, nil, nil, false) }

        /// Clears the suspicions, except for the one of a trade number that is newer than the last trade.
        mutating func clear() {
            suspected = nil
            if let newest = suspectedByNumber?.number, trade?.number ?? .max >= newest { suspectedByNumber = nil }
        }

        mutating func prove(at boottime: Int64) { proven = max(proven ?? .min, boottime) }

        mutating func suspect(_ number: Int64, until end: Int64) {
            suspectedByNumber = (number, suspectedByNumber?.until ?? end)
        }
    }

    private let source: StreamSource
    private let bounds: StreamSource.Bounds
    private let urls: [String]
    private let markets: [Market]
    /// The connection that counts, and the one that is to replace it.
    private var links: [Link] = []
    private var feeds: [Market: Feed] = [:]
    private(set) var backoff: StreamBackoff
    private var isWanted = false
    private var retryAt: Int64?
    /// The end of the cooldown. It stays in force even if nobody wants the stream meanwhile.
    private var restUntil = Int64.min
    private var lastID = 0
    private var place = 0
    /// Where in the range of ages connections are replaced, from 0 to 1. It is random, so that machines do not replace theirs at once.
    private let spread: Double
    private var lastLag: Int64?

    /// - Parameters:
    ///   - urls: The addresses, the preferred one first.
    ///   - markets: All markets that are subscribed to, at least one.
    ///   - record: The record of earlier runs.
    ///   - spread: A random number from 0 to 1.
    init(
        _ source: StreamSource, urls: [String], markets: [Market], record: StreamRecord = StreamRecord(),
        spread: Double = .random(in: 0...1)
    ) {
        self.spread = spread
        self.source = source
        bounds = source.bounds(markets)
        self.urls = urls
        self.markets = markets
        backoff = StreamBackoff(attempts: record.attempts)
        restUntil = record.restUntil
    }

    // MARK: - For requesters

    /// The newest price of a market; `nil` unless it is proven.
    func price(of market: Market, at now: ObservationTime) -> LoadedPrice? {
        guard let feed = feeds[market], let trade = feed.trade, let proven = feed.proven, feed.suspected == nil,
            feed.suspectedByNumber == nil, feed.late == nil, now.boottime - proven <= Bounds.proof,
            links.first?.phase == .live
        else { return nil }
        // Without a position: the response of a later request may be from a cache, and must not count as a step back.
        var price = LoadedPrice(market, trade.value)
        price.observed = now.advanced(by: .milliseconds(min(0, proven - now.boottime)))
        price.push = .init(.stream, interval: .milliseconds(Bounds.proof))
        return price
    }

    /// Compares the stream with the price of a request. That price was the newest one at the time, or is from a cache.
    /// - Parameters:
    ///   - requested: When the request was sent.
    ///   - cacheTime: How old the response may be.
    mutating func compare(
        _ polled: LoadedPrice, requested: Int64, cacheTime: Int64, at now: ObservationTime
    ) -> [Action] {
        guard var feed = feeds[polled.market], feed.isKnown, let trade = feed.trade, links.first?.phase == .live
        else { return [] }
        let wasShown = price(of: polled.market, at: now) != nil
        if polled.value == trade.value {
            (feed.suspected, feed.suspectedByNumber) = (nil, nil)
            feed.proven = max(feed.proven ?? .min, requested - cacheTime)
        } else if let theirs = polled.position.sequence, let mine = trade.position.sequence {
            if theirs > mine { feed.suspect(theirs, until: now.boottime + Bounds.afterNumber) }
        } else if feed.arrived < requested - cacheTime - Bounds.before, feed.suspected == nil {
            feed.suspected = now.boottime + Bounds.after
        }
        feeds[polled.market] = feed
        return changes(polled.market, wasShown: wasShown, at: now)
    }

    /// A price that counts again is a change for the subscribers.
    private func changes(_ market: Market, wasShown: Bool, at now: ObservationTime) -> [Action] {
        !wasShown && price(of: market, at: now) != nil ? [.changed(market)] : []
    }

    // MARK: - Events

    /// Opens the stream.
    mutating func start(at now: Int64) -> [Action] {
        guard !isWanted else { return [] }
        isWanted = true
        return attempt(at: now)
    }

    /// Closes the stream.
    mutating func stop(at now: Int64) -> [Action] {
        for link in links { noteEnd(of: link, at: now) }
        defer { (isWanted, retryAt, links, feeds) = (false, nil, [], [:]) }
        return links.map { .close($0.id) }
    }

    private func index(of id: Int) -> Int? { links.firstIndex { $0.id == id } }

    private mutating func attempt(at now: Int64) -> [Action] {
        let allowed = max(backoff.mayAttempt(at: now), restUntil)
        guard allowed <= now else {
            retryAt = allowed
            return []
        }
        retryAt = nil
        backoff.attempted(at: now)
        lastID += 1
        let age = bounds.retirement.map {
            $0.lowerBound + Int64(Double($0.upperBound - $0.lowerBound) * spread)
        }
        links.append(Link(id: lastID, begun: now, retirement: age.map { now + $0 }))
        let target = source.target(markets.map(source.name))
        return [.keep(record), .open(lastID, url: urls[min(place, urls.count - 1)] + target)]
    }

    private var record: StreamRecord { StreamRecord(attempts: backoff.attempts, restUntil: restUntil) }

    /// A connection is open.
    mutating func opened(_ id: Int, at now: Int64) -> [Action] {
        guard let index = index(of: id), links[index].phase == .opening else { return [] }
        links[index].phase = source.acknowledges ? .subscribing : .live
        links[index].opened = now
        links[index].lastMessage = now
        links[index].lastHeartbeat = now
        links[index].unacknowledged = source.acknowledges ? Set(markets) : []
        return source.subscriptions(markets.map(source.name)).map { .send($0, id) }
    }

    /// Counts frames, whatever they are. A connection that brings too many for too long is ended, and the stream goes into cooldown.
    mutating func counted(_ frames: Int, bytes: Int, on id: Int, at now: Int64) -> [Action] {
        guard let index = index(of: id), !links[index].traffic.count(messages: frames, bytes: bytes, at: now) else {
            return []
        }
        let reason = "it brings \(Bounds.traffic.excessText)"
        return ended(id, .busy(least: Bounds.lagRest), reason, at: now, jitter: 1)
    }

    /// A readable message has come.
    /// - Parameter since: When it may have arrived at the earliest, if it has waited to be read. Its price is dated so.
    mutating func received(
        _ message: StreamMessage, on id: Int, at now: ObservationTime, since: Int64? = nil
    ) -> [Action] {
        let arrival = since ?? now.boottime
        guard let index = index(of: id), links[index].phase != .opening else { return [] }
        links[index].lastMessage = now.boottime
        links[index].heartbeatSent = nil
        var actions: [Action] = []
        switch message {
        case .trade(let trade): actions = take(trade, from: index, arrival: arrival, at: now)
        case .lastTrade(let market, let number):
            actions = take(number, of: market, from: index, arrival: arrival, at: now)
        case .acknowledged(let markets): acknowledged(markets, index)
        case .refused(let market, let reason):
            links[index].refused.formUnion(market.map { [$0] } ?? [])
            guard let market, links[index].refused.count < markets.count else {
                return ended(id, .refused, reason, at: now.boottime, jitter: 1)
            }
            actions = [.report(.refusedMarket(market, reason))]
            acknowledged([market], index)
        case .leaving:
            // If every connection announces its end at once, opening another one does not help.
            if let since = links[index].dataSince, now.boottime - since >= Bounds.leaving, !links[index].isLeaving {
                actions = replace(at: now.boottime)
            }
        case .other: break
        }
        if let longest = bounds.provenByTraffic, self.index(of: id) == 0 { proveAll(for: longest, at: arrival) }
        return actions
    }

    /// The subscription of these markets is acknowledged. A price counts as an acknowledgement, too.
    private mutating func acknowledged(_ markets: [Market], _ index: Int) {
        links[index].unacknowledged.subtract(markets)
        if links[index].unacknowledged.isEmpty { links[index].phase = .live }
    }

    private mutating func beginFeeds() {
        for market in feeds.keys { feeds[market]?.begin() }
    }

    private mutating func proveAll(for longest: Int64, at now: Int64) {
        for (market, feed) in feeds
        where feed.isKnown && feed.proven != nil && now - feed.arrived <= longest {
            feeds[market]?.prove(at: now)
        }
    }

    private mutating func take(
        _ trade: StreamTrade, from index: Int, arrival: Int64, at now: ObservationTime
    ) -> [Action] {
        // Some exchanges send prices before the acknowledgement.
        guard markets.contains(trade.market) else { return [] }
        var actions: [Action] = []
        if links[index].dataSince == nil { links[index].dataSince = now.boottime }
        if index > 0 {
            // The previous connection is no longer needed.
            actions.append(.close(links[0].id))
            noteEnd(of: links.removeFirst(), at: now.boottime)
            beginFeeds()
        }
        acknowledged([trade.market], 0)
        var feed = feeds[trade.market] ?? Feed()
        let isFirst = !feed.isKnown
        feed.isKnown = true
        defer { feeds[trade.market] = feed }
        // A single time in the future would make all following messages look old and late.
        if feed.lag.isAhead(sent: trade.sent, arrivedAt: now.boottime) { return actions }
        if let held = feed.trade, trade.isBefore(held), held.time - trade.time <= Bounds.repeated { return actions }
        let isNew = feed.trade?.value != trade.value
        if isFirst, trade.time - now.wall.milliseconds > Bounds.ahead {
            // A price from the future would make all following ones look old. If this machine's clock is slow, the next one counts.
            return actions
        }
        let lag = feed.lag.lag(sent: trade.sent, arrivedAt: now.boottime)
        let isLate = lag.map { $0 > Bounds.lag } ?? false
        // A first price may be that of the last trade, however old. A later one need not be new either: a stream may be late from the
        // beginning.
        let mayBeOld = isFirst || lag == nil
        let age = mayBeOld ? max(0, now.wall.milliseconds - trade.time) : 0
        if age <= Bounds.oldestSample, !isLate { feed.lag.add(sent: trade.sent, arrivedAt: now.boottime) }
        let wasShown = price(of: trade.market, at: now) != nil
        feed.arrived = min(arrival, now.boottime - age)
        if mayBeOld, isLate || age > (isFirst ? bounds.oldestFirst : Bounds.oldestSample) {
            if feed.trade != trade { feed.proven = nil }
            feed.trade = trade
            return actions
        }
        let before = feed.late
        feed.late = isLate ? (since: before?.since ?? now.boottime, isAgain: before != nil) : nil
        feed.trade = trade
        feed.clear()
        feed.prove(at: arrival)
        if isNew || !wasShown && feed.late == nil { actions.append(.changed(trade.market)) }
        return actions
    }

    private mutating func take(
        _ number: Int64, of market: Market, from index: Int, arrival: Int64, at now: ObservationTime
    ) -> [Action] {
        // Zero was observed for markets without a trade.
        guard index == 0, number > 0, var feed = feeds[market], let mine = feed.trade?.number else { return [] }
        let wasShown = price(of: market, at: now) != nil
        if number <= mine {
            // The suspicion stays if a request has shown a newer number.
            if let newest = feed.suspectedByNumber?.number, newest <= mine { feed.suspectedByNumber = nil }
            feed.prove(at: arrival)
        } else {
            feed.suspect(number, until: now.boottime + Bounds.afterNumber)
        }
        feeds[market] = feed
        return changes(market, wasShown: wasShown, at: now)
    }

    /// Opens the next connection. The present one stays open until the next one has brought a price.
    private mutating func replace(at now: Int64) -> [Action] {
        links[0].isLeaving = true
        return links.count == 1 ? attempt(at: now) : []
    }

    /// A connection has ended, or could not be opened.
    /// - Parameters:
    ///   - kind: The meaning of the end.
    ///   - reason: A description in one line.
    ///   - jitter: A random number from 0 to 1.
    mutating func ended(
        _ id: Int, _ kind: StreamBackoff.Kind, _ reason: String, at now: Int64, jitter: Double
    ) -> [Action] {
        guard let index = index(of: id) else { return [] }
        let link = links.remove(at: index)
        var actions: [Action] = [.close(id)]
        if index == 0 { beginFeeds() }
        noteEnd(of: link, at: now)
        // If another connection is left that is not leaving, it replaces this one.
        guard isWanted, links.first?.isLeaving ?? true else { return actions }
        let next = max(now + backoff.wait(after: kind, jitter: jitter), backoff.mayAttempt(at: now))
        retryAt = next
        if kind != .transient {
            restUntil = max(restUntil, next)
            actions.append(.keep(record))
        }
        actions.append(.report(.ended(reason, isRefused: kind == .refused, retryIn: .milliseconds(next - now))))
        return actions
    }

    /// After a good connection, the next failure counts as the first one.
    private mutating func noteEnd(of link: Link, at now: Int64) {
        if let since = link.dataSince, now - since >= StreamBackoff.healthy { backoff.reset() }
    }

    /// Switches to the next address, since the present one does not serve this region.
    /// - Returns: Whether there is another address.
    mutating func useNextAddress() -> Bool {
        guard place + 1 < urls.count else { return false }
        place += 1
        return true
    }

    // MARK: - Deadlines

    /// All deadlines, in no particular order.
    var deadlines: [(at: Int64, what: Deadline)] {
        var all: [(at: Int64, what: Deadline)] = []
        if let retryAt { all.append((retryAt, .retry)) }
        for (index, link) in links.enumerated() {
            let id = link.id
            if link.phase == .opening {
                all.append((link.begun + Bounds.opening, .opening(id)))
                continue
            }
            if link.phase == .subscribing { all.append((link.opened + Bounds.acknowledgement, .acknowledgement(id))) }
            if link.dataSince == nil { all.append((link.opened + bounds.firstData, .firstData(id))) }
            all.append((link.lastMessage + bounds.silence, .silence(id)))
            if let heartbeat = bounds.heartbeat {
                all.append((link.lastHeartbeat + heartbeat.every, .heartbeat(id)))
                if let sent = link.heartbeatSent { all.append((sent + heartbeat.within, .heartbeatResponse(id))) }
            }
            if let retirement = link.retirement, index == 0, !link.isLeaving {
                all.append((retirement, .retirement(id)))
            }
        }
        for (market, feed) in feeds where links.first?.phase == .live {
            if let suspected = [feed.suspected, feed.suspectedByNumber?.until].compactMap(\.self).min() {
                all.append((suspected, .suspicion(market)))
            }
            if let late = feed.late, late.isAgain { all.append((late.since + Bounds.lagLasts, .lag(market))) }
        }
        return all
    }

    /// The first of the deadlines; `nil` if there is none.
    var nextDeadline: Int64? { deadlines.map(\.at).min() }

    /// Does what is due.
    mutating func timerFired(at now: Int64, jitter: Double) -> [Action] {
        var actions: [Action] = []
        // A deadline may end the connection of another one, so they are computed anew each time.
        while let due = deadlines.filter({ $0.at <= now }).min(by: { $0.at < $1.at })?.what {
            actions += expired(due, at: now, jitter: jitter)
        }
        return actions
    }

    private mutating func expired(_ deadline: Deadline, at now: Int64, jitter: Double) -> [Action] {
        func end(_ id: Int, _ reason: String, _ kind: StreamBackoff.Kind = .transient) -> [Action] {
            ended(id, kind, reason, at: now, jitter: jitter)
        }
        switch deadline {
        case .retry: return attempt(at: now)
        case .opening(let id): return end(id, "no connection in time")
        case .acknowledgement(let id): return end(id, "no acknowledgement in time")
        case .firstData(let id): return end(id, "no price after the subscription")
        case .silence(let id): return end(id, "no message for \(bounds.silence / 1000) s")
        case .heartbeatResponse(let id): return end(id, "no response to a heartbeat")
        case .heartbeat(let id):
            guard let index = index(of: id), let text = source.heartbeat else { return [] }
            links[index].lastHeartbeat = now
            links[index].heartbeatSent = links[index].heartbeatSent ?? now
            return [.send(text, id)]
        case .retirement:
            return replace(at: now)
        case .suspicion(let market):
            return links.first.map { end($0.id, "it does not show the newest price of \(market.pair)") } ?? []
        case .lag(let market):
            // If the previous connection lagged too, another one does not help.
            let isAgain = lastLag.map { now - $0 < Bounds.lagRest } ?? false
            lastLag = now
            let reason = "its prices of \(market.pair) are late"
            return links.first.map { end($0.id, reason, isAgain ? .busy(least: Bounds.lagRest) : .transient) } ?? []
        }
    }
}

/// What a stream reports to the operator.
package enum StreamEvent: Sendable, Equatable {
    /// One market is refused, the others are not.
    case refusedMarket(Market, String)
    /// The connection has ended, or could not be opened.
    case ended(String, isRefused: Bool, retryIn: Duration)
}
