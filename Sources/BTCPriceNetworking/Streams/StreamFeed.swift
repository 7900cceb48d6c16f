import BTCPriceCore
import Glibc
import NIOCore
import NIOWebSocket
import Synchronization
import Varlink

/// The stream of one exchange for some of its markets, on one connection. Performs the actions of ``StreamMachine``.
// Accessed on the event loop's thread only, except for its constants and what a mutex guards.
final class StreamFeed: WebSocketDelegate, @unchecked Sendable {
    typealias Told = @Sendable (StreamNews) -> Void

    private let source: StreamSource
    private let markets: [StreamSource.NamedMarket]
    private let mark: [UInt8]
    private let client: ExchangeClient
    private let now: TimeSource
    private let keep: @Sendable (StreamRecord) -> Void
    private let report: @Sendable (StreamEvent) -> Void
    private let machine: Mutex<StreamMachine>
    private let subscribers = Mutex<[Market: Told]>([:])
    private var connections: [Int: WebSocketConnection] = [:]
    private var timer: (at: Int64, scheduled: Scheduled<Void>)?
    private var schedule = ReadSchedule()
    /// When the connections were last read, and when before that, `CLOCK_BOOTTIME` in milliseconds.
    private var lastRead: Int64?
    private var readBefore: Int64?
    /// The next read.
    private var reading: (at: NIODeadline, scheduled: Scheduled<Void>)?

    /// A read that has found something ends within this time, milliseconds.
    private static let longestRead: Int64 = 50
    /// The number of prices of a market that are read of those that arrived together.
    private static let prices = 8

    /// - Parameters:
    ///   - urls: The addresses, the preferred one first: scheme and host.
    ///   - markets: At least one.
    ///   - client: Opens the connections.
    ///   - now: Reads the clocks.
    ///   - record: The record of earlier runs.
    ///   - keep: Stores a record for the next run. Called on the event loop's thread, and must not block.
    ///   - report: Reports to the operator. Called on the event loop's thread.
    init(
        _ source: StreamSource, urls: [String], markets: [Market], client: ExchangeClient, now: @escaping TimeSource,
        record: StreamRecord = StreamRecord(), keep: @escaping @Sendable (StreamRecord) -> Void = { _ in },
        report: @escaping @Sendable (StreamEvent) -> Void
    ) {
        self.source = source
        self.markets = source.named(markets)
        mark = Array(source.priceMark.utf8)
        self.client = client
        self.now = now
        self.keep = keep
        self.report = report
        machine = Mutex(StreamMachine(source, urls: urls, markets: markets, record: record))
    }

    // MARK: - For the markets

    func start(_ market: Market, _ told: @escaping Told) {
        subscribers.withLock { $0[market] = told }
        onLoop { feed in feed.perform { $0.start(at: $1.boottime) } }
    }

    func stop(_ market: Market) {
        let isLast = subscribers.withLock { subscribers in
            subscribers[market] = nil
            return subscribers.isEmpty
        }
        if isLast { onLoop { feed in feed.perform { $0.stop(at: $1.boottime) } } }
    }

    /// Sets when the connections are read (``PriceStream/read(every:before:)``).
    func read(every interval: Duration, before tick: Duration?) {
        let due = tick.map { NIODeadline.now() + TimeAmount($0) }
        onLoop { feed in
            feed.schedule.change(interval: TimeAmount(interval), tick: due)
            feed.scheduleRead()
        }
    }

    func price(of market: Market) -> LoadedPrice? {
        let present = now()
        return machine.withLock { $0.price(of: market, at: present) }
    }

    func compare(_ polled: LoadedPrice, requested: Int64, cacheTime: Duration) {
        let present = now()
        let actions = machine.withLock {
            $0.compare(polled, requested: requested, cacheTime: cacheTime.wholeMilliseconds, at: present)
        }
        onLoop { $0.perform(actions) }
    }

    private func onLoop(_ body: @escaping @Sendable (StreamFeed) -> Void) {
        let eventLoop = client.eventLoop
        if eventLoop.inEventLoop { body(self) } else { eventLoop.execute { body(self) } }
    }

    // MARK: - Actions

    private func perform(_ change: (inout StreamMachine, ObservationTime) -> [StreamMachine.Action]) {
        let present = now()
        perform(machine.withLock { change(&$0, present) })
    }

    private func perform(_ actions: [StreamMachine.Action]) {
        var changed: Set<Market> = []
        for action in actions {
            switch action {
            case .open(let id, let url): open(id, url)
            case .send(let text, let id): connections[id]?.send(text)
            case .close(let id): connections.removeValue(forKey: id)?.close(.normalClosure)
            case .changed(let market): changed.insert(market)
            case .report(let event): report(event)
            case .keep(let record): keep(record)
            }
        }
        setTimer()
        guard !changed.isEmpty else { return }
        let told = subscribers.withLock { subscribers in changed.compactMap { subscribers[$0] } }
        for told in told { told(.price) }
    }

    private func open(_ id: Int, _ url: String) {
        // A WebSocket connection starts with an HTTP request (RFC 6455, section 4.1).
        guard let request = HTTPRequest("http" + url.dropFirst(2)) else {
            let reason = "\(oneLine(url)) is not a valid address"
            return perform { $0.ended(id, .refused, reason, at: $1.boottime, jitter: 1) }
        }
        let connection = client.webSocket(request, delegate: self)
        connections[id] = connection
        connection.open()
    }

    /// Sets the only timer to the first deadline. Most deadlines move with every message, so it may find nothing due.
    private func setTimer() {
        guard let next = machine.withLock({ $0.nextDeadline }) else {
            timer.take()?.scheduled.cancel()
            return
        }
        if let timer, timer.at <= next { return }
        timer.take()?.scheduled.cancel()
        let delay = TimeAmount.milliseconds(max(0, next - now().boottime))
        timer = (
            next,
            client.eventLoop.scheduleTask(in: delay) {
                self.timer = nil
                self.perform { $0.timerFired(at: $1.boottime, jitter: .random(in: 0...1)) }
            }
        )
    }

    // MARK: - Reading

    /// Reads what has come, and if that is nothing, what comes next.
    private func read() {
        reading.take()?.scheduled.cancel()
        guard !connections.isEmpty else {
            (lastRead, readBefore) = (nil, nil)
            return
        }
        (lastRead, readBefore) = (now().boottime, lastRead)
        for connection in connections.values { connection.read() }
        scheduleRead()
    }

    private func scheduleRead() {
        guard lastRead != nil else { return }
        let next = schedule.next(after: .now())
        // The ticks of several currencies may be at different moments.
        if let reading, reading.at <= next { return }
        reading.take()?.scheduled.cancel()
        reading = (next, client.eventLoop.scheduleTask(deadline: next) { self.read() })
    }

    // MARK: - The connections

    private func id(of connection: WebSocketConnection) -> Int? {
        connections.first { $0.value === connection }?.key
    }

    func opened(_ connection: WebSocketConnection) {
        guard let id = id(of: connection) else { return }
        perform { $0.opened(id, at: $1.boottime) }
        read()
    }

    /// Reads messages that arrived together, and notifies the subscribers once.
    func received(_ texts: [ByteBuffer], frames: Int, bytes: Int, on connection: WebSocketConnection) {
        guard let id = id(of: connection) else { return }
        let messages = newest(of: texts)
        let (lastRead, readBefore) = (lastRead, readBefore)
        perform { machine, present in
            // What a read finds has waited since the one before it. What comes later has not.
            let isLater = lastRead.map { present.boottime - $0 > Self.longestRead } ?? false
            let since = isLater ? lastRead : readBefore ?? lastRead
            return machine.counted(frames, bytes: bytes, on: id, at: present.boottime)
                + messages.flatMap { machine.received($0, on: id, at: present, since: since) }
        }
    }

    /// The messages in their order, of each market with its last ``prices`` only. The newest price is among them, but need not be the
    /// last one.
    private func newest(of texts: [ByteBuffer]) -> [StreamMessage] {
        var messages: [StreamMessage] = []
        var read: [Market: Int] = [:]
        for text in texts.reversed() {
            let market = texts.count > Self.prices ? market(ofPriceIn: text) : nil
            if let market, read[market, default: 0] >= Self.prices { continue }
            do {
                messages.append(try source.read(try JSONValue(parsing: Array(text.readableBytesView)[...]), markets))
                if let market { read[market, default: 0] += 1 }
            } catch {
                // A message that can't be read proves nothing. Without others, the stream counts as silent.
            }
        }
        return messages.reversed()
    }

    /// The market whose price a message has, without reading it; `nil` if that is not certain.
    private func market(ofPriceIn text: ByteBuffer) -> Market? {
        text.withUnsafeReadableBytes { bytes in
            guard mark.isIn(bytes) else { return nil }
            let found = markets.filter { $0.bytes.isIn(bytes) }
            return found.count == 1 ? found[0].market : nil
        }
    }

    func ended(_ end: WebSocketEnd, _ connection: WebSocketConnection) {
        guard let id = id(of: connection) else { return }
        let (kind, reason) = meaning(of: end)
        if case .refused(let response) = end, response.status == 451 {
            let isServed = machine.withLock { $0.useNextAddress() }
            if isServed {
                return perform { $0.ended(id, .transient, reason, at: $1.boottime, jitter: .random(in: 0...1)) }
            }
        }
        perform { $0.ended(id, kind, reason, at: $1.boottime, jitter: .random(in: 0...1)) }
        if case .limited(let retryAfter) = kind, source.sharesLimits {
            let error = PriceLoadingError.rateLimited(
                "its stream: \(reason)", retryAfter: retryAfter.map(Duration.milliseconds))
            for told in subscribers.withLock({ Array($0.values) }) { told(.limited(error)) }
        }
    }

    /// What the end of a connection means (RFC 6455, section 7.4.1, and the registry of IANA).
    private func meaning(of end: WebSocketEnd) -> (StreamBackoff.Kind, String) {
        switch end {
        case .refused(let response):
            let reason = "HTTP \(response.status)"
            let pause = response.pause?.wholeMilliseconds
            switch response.status {
            case 418, 429: return (.limited(retryAfter: pause), reason)
            case 408, 425, 500...: return (.busy(least: max(5000, pause ?? 0)), reason)
            case 400..<500: return (.refused, reason)
            default: return (.unexpected, "\(reason) instead of a stream")
            }
        case .noWebSocket(let reason): return (.unexpected, "no WebSocket: \(reason)")
        case .closed(let code, let text):
            let name = code.map { "closed with \($0)" } ?? "closed"
            let reason = text.isEmpty ? name : "\(name), \(oneLine(text))"
            switch code {
            case 1008: return (.limited(retryAfter: nil), reason)
            case 1011: return (.busy(least: 5000), reason)
            case 1013: return (.busy(least: 30_000), reason)
            case 1002, 1003, 1007, 1009, 1010: return (.refused, reason)
            default: return (.transient, reason)
            }
        case .violated(let reason): return (.busy(least: 5000), "the server sends \(reason)")
        case .failed(let error): return (.transient, "\(client.loadingError(error))")
        }
    }
}

/// The stream of one market.
struct MarketStream: PriceStream {
    let feed: StreamFeed
    let market: Market
    let cacheTime: Duration

    var current: LoadedPrice? { feed.price(of: market) }

    func compare(_ polled: LoadedPrice, requested boottime: Int64) {
        feed.compare(polled, requested: boottime, cacheTime: cacheTime)
    }

    func start(_ told: @escaping @Sendable (StreamNews) -> Void) { feed.start(market, told) }

    func stop() { feed.stop(market) }

    func read(every interval: Duration, before tick: Duration?) { feed.read(every: interval, before: tick) }
}

extension [UInt8] {
    /// Whether these bytes are within others.
    fileprivate func isIn(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let first, var start = bytes.baseAddress else { return false }
        let end = start + bytes.count
        while let found = memchr(start, Int32(first), end - start).map({ UnsafeRawPointer($0) }) {
            if end - found < count { return false }
            if memcmp(found, self, count) == 0 { return true }
            start = found + 1
        }
        return false
    }
}
