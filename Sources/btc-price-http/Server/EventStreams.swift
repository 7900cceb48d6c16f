import BTCPriceCore
import BTCPriceSocket
import NIOCore

/// The open event streams (HTML Living Standard, Server-sent events). All of them share the buffer of an event. Use only on the event loop.
final class EventStreams {
    private struct Stream {
        let connection: GatewayConnection
        let currencies: Set<String>?
        let updates: WatchUpdates
        /// The currencies whose newest event was not sent because the client did not read.
        var missed: Set<String> = []
        /// Whether the same is true for ``EventStreams/gone``.
        var hasMissedGone = false

        func wants(_ currency: String) -> Bool { currencies?.contains(currency) ?? true }
    }

    private struct Event {
        let currency: String
        let tick: Int64
        let isFresh: Bool
        let bytes: ByteBuffer
    }

    /// The seconds from one comment to the next.
    private static let heartbeat: Int64 = 15
    /// How often to check whether a reload has dropped a currency, in seconds.
    private static let look: Int64 = 5
    /// How long the watch continues without a stream. Clients often reconnect, and each start costs the daemon a connection.
    private static let patience = TimeAmount.seconds(2)

    private let most: Int
    private let eventLoop: any EventLoop
    private let watch: PriceWatch
    private let kept: @Sendable () async -> PriceList?
    /// Changes at every start of the gateway.
    private let nonce = String(UInt32.random(in: .min ... .max), radix: 16)
    private var sequence: UInt64 = 0
    private var streams: [ObjectIdentifier: Stream] = [:]
    /// The newest event of each currency, in the order of their ids: a client that has the last one has missed none before it.
    private var newest: [Event] = []
    private var isGone = false
    /// The updates that are requested from the daemon: changes if a stream wants them.
    private var watched = WatchUpdates.ticks
    private var beats: RepeatedTask?
    private var seconds: Int64 = 0
    private var silence = DaemonSilence(at: 0)
    /// Ends the watch after the last stream.
    private var end: Scheduled<Void>?

    /// - Parameters:
    ///   - most: The maximum number of streams.
    ///   - kept: The currencies that the daemon keeps; `nil` if it does not respond.
    init(
        atMost most: Int, socket: @escaping @Sendable () -> String, kept: @escaping @Sendable () async -> PriceList?,
        on eventLoop: any EventLoop
    ) {
        self.most = most
        self.kept = kept
        self.eventLoop = eventLoop
        watch = PriceWatch(socket: socket)
    }

    static let full = Problem.unavailable("There are too many event streams.", retryAfter: 10)

    /// Whether another stream is allowed.
    var hasRoom: Bool { streams.count < most }

    private var lastID: String { "\(nonce)-\(sequence)" }

    func enter(_ connection: GatewayConnection, _ subscription: EventSubscription) {
        end?.cancel()
        end = nil
        streams[ObjectIdentifier(connection)] = Stream(
            connection: connection, currencies: subscription.currencies, updates: subscription.updates)
        if beats == nil { start() }
        followSubscriptions()
        _ = connection.send(ByteBuffer(string: "retry: 1000\n\n"))
        // A client that reconnects and has missed nothing waits for the next event.
        if subscription.lastEventID != lastID {
            for event in newest { send(event, to: ObjectIdentifier(connection)) }
        }
        if isGone { sendGone(to: ObjectIdentifier(connection)) }
    }

    func leave(_ connection: GatewayConnection) {
        guard streams.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        guard streams.isEmpty else { return followSubscriptions() }
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        end = eventLoop.scheduleTask(in: Self.patience) { bound.value.stop() }
    }

    private func stop() {
        watch.stop()
        beats?.cancel()
        beats = nil
        // These events would be outdated for the next client.
        newest = []
        isGone = false
    }

    /// Called when a client that did not read reads again.
    func isWritable(_ connection: GatewayConnection) {
        let id = ObjectIdentifier(connection)
        for event in newest where streams[id]?.missed.contains(event.currency) == true { send(event, to: id) }
        if isGone, streams[id]?.hasMissedGone == true { sendGone(to: id) }
    }

    private func send(_ event: Event, to id: ObjectIdentifier) {
        guard let stream = streams[id], stream.wants(event.currency) else { return }
        // Sending may call `isWritable`, which must not send the same event.
        streams[id]?.missed.remove(event.currency)
        if !stream.connection.send(event.bytes) { streams[id]?.missed.insert(event.currency) }
    }

    private func sendGone(to id: ObjectIdentifier) {
        streams[id]?.hasMissedGone = false
        if streams[id]?.connection.send(Self.gone) == false { streams[id]?.hasMissedGone = true }
    }

    private func start() {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        silence = DaemonSilence(at: Self.now)
        startWatch()
        beats = eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            bound.value.beat()
        }
    }

    private func beat() {
        seconds += 1
        if seconds.isMultiple(of: Self.heartbeat) {
            let comment = ByteBuffer(string: ":\n\n")
            for stream in streams.values { _ = stream.connection.send(comment) }
        }
        let mustAsk = !isGone && silence.mustAsk(at: Self.now)
        guard mustAsk || seconds.isMultiple(of: Self.look) else { return }
        let (bound, eventLoop, kept) = (NIOLoopBound(self, eventLoop: eventLoop), eventLoop, kept)
        Task {
            let list = await kept()
            eventLoop.execute {
                if mustAsk { bound.value.responded(list != nil) }
                if let list { bound.value.endStreams(without: list) }
            }
        }
    }

    private func responded(_ isThere: Bool) {
        guard silence.responded(isThere, at: Self.now), beats != nil else { return }
        tellGone()
        // When the daemon is back, a new watch gets its state at once, and not only with the next tick.
        startWatch()
    }

    /// Ends the streams that name a currency that is no longer kept.
    private func endStreams(without list: PriceList) {
        let codes = Set(list.currencies.map(\.currency))
        newest.removeAll { !codes.contains($0.currency) }
        for stream in streams.values {
            guard let code = stream.currencies?.first(where: { !codes.contains($0) }) else { continue }
            leave(stream.connection)
            let data = JSON.object(["state": .string("ended"), "reason": .string(list.notKept(code).detail)]).text
            stream.connection.finish(ByteBuffer(string: "event: ended\ndata: \(data)\n\n"))
        }
    }

    private static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000) }

    private func startWatch() {
        let (bound, eventLoop) = (NIOLoopBound(self, eventLoop: eventLoop), eventLoop)
        watch.start(watched) { news in eventLoop.execute { bound.value.take(news) } }
    }

    /// Restarts the watch if the streams want other updates.
    private func followSubscriptions() {
        let wanted: WatchUpdates = streams.values.contains { $0.updates == .changes } ? .changes : .ticks
        guard wanted != watched else { return }
        watched = wanted
        startWatch()
    }

    private func take(_ news: PriceWatch.News) {
        guard beats != nil else { return }
        switch news {
        case .state(let message, _):
            isGone = false
            silence.heard(at: Self.now)
            sequence += 1
            let currency = message.state.currency
            let text = JSON.object(PriceShapes.price(message.state, at: .now())).text
            // An update between the ticks is a fresh price that follows another fresh price of the same tick.
            let before = newest.first { $0.currency == currency }
            let isFresh = message.state.freshness == .fresh
            let isChange = isFresh && before?.isFresh == true && before?.tick == message.state.ticks.number
            let event = Event(
                currency: currency, tick: message.state.ticks.number, isFresh: isFresh,
                bytes: ByteBuffer(string: "id: \(lastID)\nevent: price\ndata: \(text)\n\n"))
            newest.removeAll { $0.currency == currency }
            newest.append(event)
            for (id, stream) in streams where !isChange || stream.updates == .changes { send(event, to: id) }
        case .kept: break
        case .gone: tellGone()
        }
    }

    private func tellGone() {
        guard !isGone else { return }
        isGone = true
        newest = []
        for id in streams.keys { sendGone(to: id) }
    }

    /// The event that is sent when the daemon can't be reached.
    private static let gone = ByteBuffer(string: "event: gone\ndata: {\"state\":\"unreachable\"}\n\n")
}

/// Decides when to ask a daemon that sends no state whether it is there: its ticks may be far apart or paused, or it may hang. A pure value.
///
/// All times are in milliseconds, on any clock that does not go back.
struct DaemonSilence: Sendable {
    /// The time without a sign of the daemon after which it is asked.
    static let longest: Int64 = 1500

    private var lastSign: Int64
    /// When it was asked; `nil` if it has responded.
    private var asked: Int64?

    init(at now: Int64) {
        lastSign = now
    }

    mutating func heard(at now: Int64) { lastSign = now }

    /// - Returns: Whether to ask the daemon now. The response must be passed to ``responded(_:at:)``.
    mutating func mustAsk(at now: Int64) -> Bool {
        guard asked == nil, now - lastSign >= Self.longest else { return false }
        asked = now
        return true
    }

    /// - Returns: Whether the daemon is gone.
    mutating func responded(_ isThere: Bool, at now: Int64) -> Bool {
        guard let asked else { return false }
        self.asked = nil
        if isThere { lastSign = now }
        return lastSign < asked
    }
}
