import BTCPriceCore
import BTCPriceSocket
import Glibc
import NIOCore
import NIOWebSocket
import Synchronization

/// The stream of one exchange for some of its markets, on one connection. Performs the actions of ``StreamMachine``.
// Accessed on the event loop's thread only, except for its constants and the subscribers.
final class StreamFeed: WebSocketDelegate, NIOScheduledCallbackHandler, @unchecked Sendable {
    typealias Told = @Sendable (StreamNews) -> Void

    private let source: StreamSource
    private let markets: [StreamSource.NamedMarket]
    private let mark: [UInt8]
    private let client: ExchangeClient
    private let now: TimeSource
    private let report: @Sendable (StreamEvent) -> Void
    private var machine: StreamMachine
    /// Its waits are kept by this address when the configuration is read again.
    private let address: String
    private let subscribers = Mutex<[Market: Told]>([:])
    private var connection: WebSocketConnection?
    private var timer: (at: BootTime, scheduled: Scheduled<Void>)?
    private var interval = Duration.milliseconds(100)
    /// The next read, if something came since the last one.
    private var nextRead: NIOScheduledCallback?

    /// The number of prices of a market that are read of those that arrived together.
    private static let prices = 8

    /// - Parameters:
    ///   - urls: The addresses, the preferred one first: scheme and host.
    ///   - markets: At least one.
    ///   - report: Reports to the operator. Called on the event loop's thread.
    init(
        _ source: StreamSource, urls: [String], markets: [Market], client: ExchangeClient, now: @escaping TimeSource,
        report: @escaping @Sendable (StreamEvent) -> Void
    ) {
        self.source = source
        self.markets = source.named(markets)
        mark = Array(source.priceMark.utf8)
        self.client = client
        self.now = now
        self.report = report
        address = urls[0]
        let backoff = client.streamWaits.withLock { $0[urls[0]] }
        machine = StreamMachine(source, urls: urls, markets: markets, backoff: backoff ?? StreamBackoff())
    }

    // MARK: - For the markets

    func start(_ market: Market, every interval: Duration, _ told: @escaping Told) {
        subscribers.withLock { $0[market] = told }
        onLoop { feed in
            // A connection that is not read for seconds looks silent.
            feed.interval = min(interval, .milliseconds(500))
            feed.follow()
        }
    }

    func stop(_ market: Market) {
        subscribers.withLock { $0[market] = nil }
        onLoop { $0.follow() }
    }

    /// Opens or closes the stream. Starts and stops may come here in another order than they were made.
    private func follow() {
        let isWanted = subscribers.withLock { !$0.isEmpty }
        perform { isWanted ? $0.start(at: $1) : $0.stop(at: $1) }
    }

    private func onLoop(_ body: @escaping @Sendable (StreamFeed) -> Void) {
        let eventLoop = client.eventLoop
        if eventLoop.inEventLoop { body(self) } else { eventLoop.execute { body(self) } }
    }

    // MARK: - Actions

    private func perform(_ change: (inout StreamMachine, BootTime) -> [StreamMachine.Action]) {
        var prices: [Market: LoadedPrice] = [:]
        for action in change(&machine, now().boottime) {
            switch action {
            case .open(let url):
                client.streamWaits.withLock { $0[address] = machine.backoff }
                open(url)
            case .send(let text): connection?.send(text)
            case .close:
                client.streamWaits.withLock { $0[address] = machine.backoff }
                connection.take()?.close(.normalClosure)
            case .price(let price): prices[price.market] = price
            case .report(let event): report(event)
            }
        }
        setTimer()
        guard !prices.isEmpty else { return }
        let told = subscribers.withLock(\.self)
        for (market, price) in prices { told[market]?(.price(price)) }
    }

    private func open(_ url: String) {
        // A WebSocket connection starts with an HTTP request (RFC 6455, section 4.1).
        guard let request = HTTPRequest("http" + url.dropFirst(2)) else {
            let reason = "\(oneLine(url)) is not a valid address"
            return perform { $0.ended(.refused, reason, at: $1, jitter: 1) }
        }
        let connection = client.webSocket(request, delegate: self)
        self.connection = connection
        connection.open()
    }

    /// Sets the only timer to the next deadline. It moves with every message, so the timer may find nothing due.
    private func setTimer() {
        guard let next = machine.nextDeadline else {
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
                self.perform { $0.timerFired(at: $1, jitter: .random(in: 0...1)) }
            }
        )
    }

    // MARK: - The connection

    func opened(_ connection: WebSocketConnection) {
        guard connection === self.connection else { return }
        perform { $0.opened(at: $1) }
        connection.read()
    }

    /// Reads what has come since the last read, and if that is nothing, what comes next.
    func handleScheduledCallback(eventLoop: some EventLoop) {
        nextRead = nil
        connection?.read()
    }

    /// Reads messages that arrived together, and notifies the subscribers once. Those that come up to the next read are read together, too.
    func received(_ texts: [ByteBuffer], frames: Int, bytes: Int, on connection: WebSocketConnection) {
        guard connection === self.connection else { return }
        if nextRead == nil {
            // At a multiple of the interval, so that all streams are read in one turn of the loop.
            let step = UInt64(max(1, TimeAmount(interval).nanoseconds))
            let next = NIODeadline.uptimeNanoseconds((NIODeadline.now().uptimeNanoseconds / step + 1) * step)
            // It fails only after the loop has ended.
            nextRead = try? client.eventLoop.scheduleCallback(at: next, handler: self)
        }
        let messages = newest(of: texts)
        perform { machine, present in
            machine.counted(frames, bytes: bytes, at: present)
                + messages.flatMap { machine.received($0, at: present) }
        }
    }

    /// The messages in their order, with the last ``prices`` of each market only. The newest price is among them, not always last.
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
        guard connection === self.connection else { return }
        var (kind, reason) = meaning(of: end)
        if case .refused(let response) = end, response.status == 451, machine.useNextAddress() { kind = .transient }
        perform { $0.ended(kind, reason, at: $1, jitter: .random(in: 0...1)) }
        guard case .limited(let retryAfter) = kind else { return }
        let error = PriceLoadingError.rateLimited(
            "its stream: \(reason)", retryAfter: retryAfter.map(Duration.milliseconds))
        for told in subscribers.withLock({ Array($0.values) }) { told(.limited(error)) }
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

    func start(every interval: Duration, _ told: @escaping @Sendable (StreamNews) -> Void) {
        feed.start(market, every: interval, told)
    }

    func stop() { feed.stop(market) }
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
