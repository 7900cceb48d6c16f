package import BTCPriceCore

/// Manages the connection to one exchange's stream. A pure value; all times are in milliseconds.
struct StreamMachine: Sendable {
    /// What to do. Actions are performed in the order in which they are returned.
    enum Action: Sendable, Equatable {
        /// Open a connection to an address.
        case open(String)
        case send(String)
        case close
        case price(LoadedPrice)
        case report(StreamEvent)
    }

    /// The limits. Times are in milliseconds.
    enum Bounds {
        /// The longest time from the name lookup to the response with status 101.
        static let opening: Int64 = 5000
        /// A trade that is older than the last one by less than this is a repetition. If by more, the last one's time was wrong.
        static let repeated: Int64 = 600_000
        /// How long a stream that brings too much rests at least.
        static let rest: Int64 = 300_000
        /// What a connection may bring, control frames and fragments included. The busiest second of the recorded minutes has 735 trades.
        static let traffic = TrafficLimit(messages: 20_000, bytes: 20_000 * 512)
    }

    private enum Link: Sendable {
        case closed
        case opening(since: BootTime)
        case open(Connection)
    }

    private struct Connection: Sendable {
        var lastMessage: BootTime
        var lastHeartbeat: BootTime
        /// When the first price came.
        var dataSince: BootTime?
        var refused: Set<Market> = []
        var traffic = Bounds.traffic
    }

    private let source: StreamSource
    private let bounds: StreamSource.Bounds
    private let urls: [String]
    private let markets: [Market]
    private var link = Link.closed
    /// The newest trade of each market.
    private var trades: [Market: StreamTrade] = [:]
    private(set) var backoff: StreamBackoff
    private var isWanted = false
    private var retryAt: BootTime?
    private var urlIndex = 0

    /// - Parameters:
    ///   - urls: The addresses, the preferred one first.
    ///   - markets: All markets that are subscribed to, at least one.
    ///   - backoff: That of an earlier stream at the address.
    init(_ source: StreamSource, urls: [String], markets: [Market], backoff: StreamBackoff = StreamBackoff()) {
        self.backoff = backoff
        self.source = source
        bounds = source.bounds(markets)
        self.urls = urls
        self.markets = markets
    }

    // MARK: - Events and deadlines

    mutating func start(at now: BootTime) -> [Action] {
        guard !isWanted else { return [] }
        isWanted = true
        return attempt(at: now)
    }

    mutating func stop(at now: BootTime) -> [Action] {
        (isWanted, retryAt) = (false, nil)
        return close(at: now)
    }

    private mutating func attempt(at now: BootTime) -> [Action] {
        let allowed = max(backoff.mayAttempt(at: now), backoff.restUntil)
        guard allowed <= now else {
            retryAt = allowed
            return []
        }
        retryAt = nil
        backoff.attempted(at: now)
        link = .opening(since: now)
        return [.open(urls[min(urlIndex, urls.count - 1)] + source.target(markets.map(source.name)))]
    }

    mutating func opened(at now: BootTime) -> [Action] {
        guard case .opening = link else { return [] }
        link = .open(Connection(lastMessage: now, lastHeartbeat: now))
        return source.subscriptions(markets.map(source.name)).map { .send($0) }
    }

    /// Counts frames, whatever they are. A connection that brings too many for too long is ended, and the stream goes into cooldown.
    mutating func counted(_ frames: Int, bytes: Int, at now: BootTime) -> [Action] {
        guard case .open(var connection) = link else { return [] }
        let isAllowed = connection.traffic.count(messages: frames, bytes: bytes, at: now)
        link = .open(connection)
        if isAllowed { return [] }
        return ended(.busy(least: Bounds.rest), "it brings \(Bounds.traffic.excessText)", at: now, jitter: 1)
    }

    /// A readable message has come.
    mutating func received(_ message: StreamMessage, at now: BootTime) -> [Action] {
        guard case .open(var connection) = link else { return [] }
        connection.lastMessage = now
        defer { if case .open = link { link = .open(connection) } }
        switch message {
        case .trade(let trade):
            guard markets.contains(trade.market) else { return [] }
            connection.dataSince = connection.dataSince ?? now
            if let held = trades[trade.market], trade.isBefore(held),
                (held.time ?? 0) - (trade.time ?? held.time ?? 0) <= Bounds.repeated
            {
                return []
            }
            trades[trade.market] = trade
            return [.price(trade.price)]
        case .refused(let market, let reason):
            connection.refused.formUnion(market.map { [$0] } ?? markets)
            guard let market, connection.refused.count < markets.count else {
                return ended(.refused, reason, at: now, jitter: 1)
            }
            return [.report(.refusedMarket(market, reason))]
        case .other: return []
        }
    }

    /// The connection has ended, or could not be opened.
    /// - Parameters:
    ///   - kind: The meaning of the end.
    ///   - reason: A description in one line.
    ///   - jitter: A random number from 0 to 1.
    mutating func ended(_ kind: StreamBackoff.Kind, _ reason: String, at now: BootTime, jitter: Double) -> [Action] {
        let actions = close(at: now)
        guard isWanted, !actions.isEmpty else { return actions }
        let next = max(now + backoff.wait(after: kind, jitter: jitter), backoff.mayAttempt(at: now))
        retryAt = next
        if kind != .transient { backoff.restUntil = max(backoff.restUntil, next) }
        return actions
            + [.report(.ended(reason, isRefused: kind == .refused, retryIn: .milliseconds(next - now)))]
    }

    private mutating func close(at now: BootTime) -> [Action] {
        switch link {
        case .closed: return []
        case .opening: break
        case .open(let connection):
            // After a good connection, the next failure counts as the first one.
            if let since = connection.dataSince, now - since >= StreamBackoff.healthy { backoff.reset() }
        }
        link = .closed
        trades = [:]
        return [.close]
    }

    /// Switches to the next address, since the present one does not serve this region.
    /// - Returns: Whether there is another address.
    mutating func useNextAddress() -> Bool {
        guard urlIndex + 1 < urls.count else { return false }
        urlIndex += 1
        return true
    }

    /// When something is due; `nil` if nothing is.
    var nextDeadline: BootTime? {
        switch link {
        case .closed: return retryAt
        case .opening(let since): return since + Bounds.opening
        case .open(let connection):
            return min(
                connection.lastMessage + bounds.silence,
                bounds.heartbeat.map { connection.lastHeartbeat + $0 } ?? .max)
        }
    }

    /// Does what is due.
    mutating func timerFired(at now: BootTime, jitter: Double) -> [Action] {
        guard let due = nextDeadline, due <= now else { return [] }
        switch link {
        case .closed: return attempt(at: now)
        case .opening: return ended(.transient, "no connection in time", at: now, jitter: jitter)
        case .open(var connection):
            if now - connection.lastMessage >= bounds.silence {
                return ended(.transient, "no message for \(bounds.silence / 1000) s", at: now, jitter: jitter)
            }
            connection.lastHeartbeat = now
            link = .open(connection)
            return [source.heartbeat.map { .send($0) }].compactMap(\.self)
        }
    }
}

extension StreamTrade {
    /// The price, at the position of the trade.
    fileprivate var price: LoadedPrice {
        var price = LoadedPrice(
            market, value,
            position: position.isEmpty ? FeedPosition(time: time.map(Timestamp.init(milliseconds:))) : position)
        price.push = .init(.stream)
        return price
    }
}

/// What a stream reports to the operator.
package enum StreamEvent: Sendable, Equatable {
    /// One market is refused, the others are not.
    case refusedMarket(Market, String)
    /// The connection has ended, or could not be opened.
    case ended(String, isRefused: Bool, retryIn: Duration)
}
