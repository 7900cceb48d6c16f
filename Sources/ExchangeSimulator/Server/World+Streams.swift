import NIOCore
import Synchronization

/// The streams, and the market that trades while anyone listens.
extension World {
    /// A connection that has become a stream.
    struct Stream: Sendable {
        /// Different for each stream.
        let id: Int
        let venue: VenueName
        /// The number of its upgrade since the script was set.
        let number: Int
        /// The number of the script in force at its upgrade.
        let generation: Int
    }

    /// The verdict on an upgrade.
    enum Opening {
        /// The stream, and its fault at the opening.
        case open(Stream, StreamFault?)
        case refused(Verdict)
        /// The venue has no streams.
        case unknown
    }

    // MARK: Connections and faults

    /// Judges an upgrade, and counts it.
    func open(_ uri: String, of venue: VenueName) -> Opening {
        state.withLock { state in
            if venue == .cryptocompare { return .unknown }
            state.upgrades[venue, default: 0] += 1
            state.streamID += 1
            let number = state.upgrades[venue, default: 0]
            let subscription = StreamShape(venue: venue).subscription(uri: uri)
            let pairs = subscription.map(StreamShape(venue: venue).pairs) ?? []
            let fault = state.script.fault(
                for: venue, request: number, of: pairs, scope: .stream, at: state.milliseconds)
            let stream = Stream(id: state.streamID, venue: venue, number: number, generation: state.generation)
            var refusal = fault.flatMap { Self.replacement($0, uri: uri) }
            if subscription == nil, refusal == nil {
                refusal = .reply(VenueShape.Answer(status: 404, body: []))
            }
            if let refusal {
                state.streams[venue, default: StreamCounter()].refused += 1
                return .refused(refusal)
            }
            state.streams[venue, default: StreamCounter()].open += 1
            state.streams[venue, default: StreamCounter()].opened += 1
            guard case .stream(let own) = fault else { return .open(stream, nil) }
            return .open(stream, own)
        }
    }

    func close(_ stream: Stream) {
        state.withLock { state in
            state.listeners[stream.id] = nil
            state.streams[stream.venue]?.open -= 1
        }
    }

    func count(_ stream: Stream, sent: Int = 0, received: Int = 0) {
        state.withLock { state in
            state.streams[stream.venue]?.messages += sent
            state.streams[stream.venue]?.received += received
        }
    }

    func streams(of venue: VenueName) -> StreamCounter {
        state.withLock { $0.streams[venue] ?? StreamCounter() }
    }

    /// The current fault of a stream.
    /// - Parameter pairs: The pairs of its subscriptions, or some of them.
    func fault(of stream: Stream, _ pairs: [Pair]) -> StreamFault? {
        state.withLock { state in
            guard case .stream(let fault) = state.fault(of: stream, pairs) else { return nil }
            return fault
        }
    }

    /// The price of a trade as sent to a stream, with the fault.
    func price(of trade: Trade, in pair: Pair, to stream: Stream) -> String {
        let price = pair.rate == 1 ? trade.dollars : PriceSeries.price(trade.dollars, times: pair.rate)
        let fault = state.withLock { state in
            if case .price = state.fault(of: stream, [pair]) { return state.fault(of: stream, [pair]) }
            // Rules for prices that do not count requests apply to streams too.
            return state.script.fault(for: stream.venue, request: 0, of: [pair], at: state.milliseconds)
        }
        guard case .price(let fixed, let factor) = fault else { return price }
        return fixed ?? PriceSeries.price(price, times: factor)
    }

    // MARK: The market

    /// Adds a stream to the listeners, and starts the market unless it is running.
    /// - Parameter receiver: Receives each trade.
    func listen(_ stream: Stream, _ receiver: NIOLoopBound<StreamHandler>, on loop: any EventLoop) {
        let begins = state.withLock { state in
            state.listeners[stream.id] = receiver
            defer { state.isTrading = true }
            if !state.isTrading { _ = state.trade() }
            return !state.isTrading
        }
        if begins { schedule(.now() + interval, on: loop) }
    }

    func lastTrade(of venue: VenueName) -> Trade {
        state.withLock { $0.last[venue] ?? Trade(number: 0, dollars: "0.00", nanoseconds: Trade.now()) }
    }

    /// The number of trades per timer. The timer's interval is at least 5 ms.
    private var batch: Int { max(1, Int((tradesPerSecond * 0.005).rounded(.up))) }

    private var interval: TimeAmount { .nanoseconds(Int64(Double(batch) / tradesPerSecond * 1e9)) }

    private func schedule(_ deadline: NIODeadline, on loop: any EventLoop) {
        loop.scheduleTask(deadline: deadline) {
            for _ in 0..<self.batch {
                guard self.trade() else { return }
            }
            // Late trades are made up for, up to one second of them.
            self.schedule(max(deadline + self.interval, .now() - .seconds(1)), on: loop)
        }
    }

    /// Makes a trade on each venue and notifies the streams.
    /// - Returns: Whether a stream listens.
    private func trade() -> Bool {
        sending.withLock { _ in
            let (trades, listeners) = state.withLock { state in
                guard !state.listeners.isEmpty else {
                    state.isTrading = false
                    return ([VenueName: [Trade]](), [NIOLoopBound<StreamHandler>]())
                }
                let listeners = state.listeners.sorted { $0.key < $1.key }.map(\.value)
                return (state.trade(), listeners)
            }
            for listener in listeners { listener.value.receive(trades) }
            return !listeners.isEmpty
        }
    }
}

extension World.State {
    /// The stream's fault. Rules that count upgrades apply only to upgrades since the script was set.
    fileprivate func fault(of stream: World.Stream, _ pairs: [Pair]) -> FaultScript.Fault? {
        script.fault(
            for: stream.venue, request: stream.generation == generation ? stream.number : 0, of: pairs,
            scope: .stream, at: milliseconds)
    }

    /// Makes a trade on each venue whose market is open, or the trades of a burst.
    fileprivate mutating func trade() -> [VenueName: [Trade]] {
        let dollars = feed.next()
        let now = Trade.now()
        course.add(dollars, at: now / 1_000_000_000)
        var trades: [VenueName: [Trade]] = [:]
        for venue in VenueName.allCases {
            let fault = script.fault(
                for: venue, request: 0, of: Pair.known(to: venue), scope: .stream, at: milliseconds)
            if fault == .stream(.maintenance) { continue }
            var count = 1
            if case .stream(.burst(let number)) = fault { count = number }
            let all = Trade(number: (last[venue]?.number ?? 0) + 1, dollars: dollars, nanoseconds: now).burst(of: count)
            trades[venue] = all
            last[venue] = all.last
        }
        return trades
    }
}

/// Counts one venue's streams and their messages since the start.
package struct StreamCounter: Sendable, Equatable {
    package var open = 0
    /// The upgrades that were accepted.
    package var opened = 0
    /// The upgrades that were refused or got no response.
    package var refused = 0
    /// The messages that were sent, without pings and pongs.
    package var messages = 0
    /// The messages from clients.
    package var received = 0

    /// `open 1 opened 3 messages 812 received 2 refused 0`
    var text: String {
        "open \(open) opened \(opened) messages \(messages) received \(received) refused \(refused)"
    }
}
