import NIOCore
import NIOWebSocket

/// One stream of a venue: reads the client's messages, and sends trades and heartbeats with the current fault.
final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = ByteBuffer

    private static let ping: UInt8 = 9
    /// The period of the checks for timed messages.
    private static let beat = TimeAmount.milliseconds(100)
    private static let beatsPerSecond = 10

    private let stream: World.Stream
    private let world: World
    private let shape: StreamShape
    /// The subscription in the stream's address.
    private let address: StreamShape.Subscription
    private let isWrapped: Bool

    private var context: ChannelHandlerContext?
    private var held = StreamShape.Held()
    /// The pairs of all subscriptions, including refused ones.
    private var pairs: [Pair]
    private var isBeating = false
    private var beats = 0
    private var recent: [Pair: [String]] = [:]
    private var isInMaintenance = false
    /// Whether nothing more may be sent.
    private var isEnding = false
    /// When the last message is due.
    private var lastDue = NIODeadline.uptimeNanoseconds(0)
    /// The arrival times of the client's texts in the last second.
    private var texts: [NIODeadline] = []
    /// A ping without a pong, and the beat at which it was sent.
    private var unanswered: (payload: String, beat: Int)?

    init(_ stream: World.Stream, uri: String, world: World) {
        self.stream = stream
        self.world = world
        shape = StreamShape(venue: stream.venue)
        address = shape.subscription(uri: uri) ?? StreamShape.Subscription(names: [])
        isWrapped = uri.hasPrefix("/stream")
        pairs = shape.pairs(of: address)
    }

    private var fault: StreamFault? { world.fault(of: stream, pairs) }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let fault = fault
        if stream.venue == .kraken {
            isInMaintenance = fault == .maintenance
            say([shape.status(isInMaintenance: isInMaintenance)])
        }
        if !pairs.isEmpty { subscribe(address, isInAddress: true) }
        if fault == .with101 {
            // For Binance, which sends nothing first, the last trade counts as the first message.
            let first = held.trades.flatMap { messages([world.lastTrade(of: stream.venue)], $0) }
            if !first.isEmpty { say(first) } else if stream.venue != .kraken { control(Self.ping, "first".utf8) }
        }
        scheduleBeat()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is NIOWebSocketError { close(1009, "frame too large") } else { context.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let text = String(buffer: frame.unmaskedData)
        guard frame.maskKey != nil else { return close(1002, "unmasked frame") }
        if stream.venue == .bitstamp, frame.length > 512 { return close(1009, "read limited at 513 bytes") }
        switch frame.opcode {
        case .ping: control(10, Array(buffer: frame.unmaskedData))
        case .pong: if text == unanswered?.payload { unanswered = nil }
        case .connectionClose:
            var code = frame.unmaskedData
            if fault == .mute { return }
            close(code.readInteger() ?? 1000, "")
            end()
        case .text where frame.fin:
            world.count(stream, received: 1)
            read(text)
        default: close(1003, "only whole texts")
        }
    }

    private func read(_ text: String) {
        guard !isEnding else { return }
        let now = NIODeadline.now()
        texts = texts.filter { $0 > now - .seconds(1) } + [now]
        if stream.venue == .binance, texts.count > 5 { return close(1008, "Too many requests") }
        switch shape.request(text) {
        case .invalid(let reply): say([reply])
        case .ping(let id): say([shape.pong(id, now: Trade.now())])
        case .subscribe(let subscription): subscribe(subscription)
        }
    }

    private func subscribe(_ subscription: StreamShape.Subscription, isInAddress: Bool = false) {
        let asked = shape.pairs(of: subscription)
        pairs += asked.filter { !pairs.contains($0) }
        if let context, !pairs.isEmpty {
            world.listen(stream, NIOLoopBound(self, eventLoop: context.eventLoop), on: context.eventLoop)
        }
        let fault = fault
        isBeating = true
        let (replies, added) = shape.reply(
            to: subscription, held: held, isRefused: fault == .refuseSubscription, isIgnored: fault == .ackEmpty,
            now: Trade.now())
        let fresh = added.trades.filter { !held.trades.contains($0) }
        held = held.adding(added)
        if !isInAddress { say(replies) }
        guard stream.venue == .coinbase || stream.venue == .kraken, subscription.wantsSnapshot else { return }
        let last = world.lastTrade(of: stream.venue)
        for pair in fresh { say(messages([last], pair, isSnapshot: true)) }
    }

    // MARK: The market

    /// Takes in the trades of all venues that were made at one time.
    func receive(_ trades: [VenueName: [Trade]]) {
        guard !isEnding, obey(), let own = trades[stream.venue] else { return }
        say(held.trades.flatMap { messages(own, $0) })
    }

    /// The messages about trades, with the pair's fault.
    private func messages(_ trades: [Trade], _ pair: Pair, isSnapshot: Bool = false) -> [String] {
        let fault = world.fault(of: stream, [pair])
        if fault == .silent || fault == .maintenance { return [] }
        var texts = trades.map { text(of: $0, pair, isSnapshot: isSnapshot) }
        let older = recent[pair] ?? []
        recent[pair] = (older + texts).suffix(4)
        switch fault {
        case .repeats: texts += [2, 0, 3, 1].filter { $0 < older.count }.prefix(3).map { older[$0] }
        case .wrongPair:
            if let other = Pair.known(to: stream.venue).first(where: { !held.trades.contains($0) }) {
                texts += trades.suffix(1).map { text(of: $0, other) }
            }
        case .huge(let count): texts = [#"{"padding":"\#(String(repeating: "x", count: count - 14))"}"#]
        case .garbage: texts = ["this is <no> JSON"]
        default: break
        }
        return texts
    }

    private func text(of trade: Trade, _ pair: Pair, isSnapshot: Bool = false) -> String {
        shape.message(
            of: trade, in: pair, price: world.price(of: trade, in: pair, to: stream), isSnapshot: isSnapshot,
            isWrapped: isWrapped)
    }

    // MARK: Timed messages

    private func scheduleBeat() {
        context?.eventLoop.assumeIsolated().scheduleTask(in: Self.beat) {
            guard self.context != nil else { return }
            self.keepTime()
            self.scheduleBeat()
        }
    }

    private func keepTime() {
        beats += 1
        guard !isEnding else { return }
        let fault = fault
        if stream.venue == .kraken, (fault == .maintenance) != isInMaintenance {
            isInMaintenance.toggle()
            say([shape.status(isInMaintenance: isInMaintenance)])
        }
        if fault == .pingFlood { for number in 0..<200 { control(Self.ping, "\(number)".utf8) } }
        guard beats % Self.beatsPerSecond == 0, obey() else { return }
        if fault == .bigPing { control(Self.ping, String(repeating: "p", count: 125).utf8) }
        switch stream.venue {
        case .binance:
            if let unanswered, beats - unanswered.beat > 60 * Self.beatsPerSecond { return close(1008, "Pong timeout") }
            if beats % (20 * Self.beatsPerSecond) == 0 {
                let payload = "\(Trade.now() / 1_000_000)"
                if unanswered == nil { unanswered = (payload, beats) }
                control(Self.ping, payload.utf8)
            }
        case .coinbase:
            if pairs.isEmpty, beats == 5 * Self.beatsPerSecond { return close(1008, "no subscription within 5 s") }
            say(held.heartbeats.compactMap { heartbeat(of: $0) })
        case .kraken: if isBeating { say([heartbeat(of: nil)].compactMap(\.self)) }
        case .bitstamp, .cryptocompare: break
        }
    }

    private func heartbeat(of pair: Pair?) -> String? {
        shape.heartbeat(of: pair, trade: world.lastTrade(of: stream.venue), now: Trade.now())
    }

    /// Ends the stream if the fault requires it.
    /// - Returns: Whether messages may still be sent.
    private func obey() -> Bool {
        switch fault {
        case .close(let code, let reason): close(code, reason)
        case .cut: end()
        case .halfClose:
            isEnding = true
            context?.close(mode: .output, promise: nil)
        default: return true
        }
        return false
    }

    /// Sends a close frame, and ends the connection after the client has had 0.5 s to read it.
    private func close(_ code: UInt16, _ reason: String) {
        guard !isEnding else { return }
        control(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason.utf8)
        isEnding = true
        context?.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(500)) { self.end() }
    }

    private func end() {
        isEnding = true
        context?.close(promise: nil)
    }

    // MARK: Sending

    /// Sends messages in one write, with the delay of the fault.
    private func say(_ texts: [String]) {
        guard !texts.isEmpty, let context else { return }
        let now = NIODeadline.now()
        let fault = fault
        var due = now
        if case .lag(let lag) = fault { due = now + .milliseconds(lag) }
        // Delayed messages keep their order.
        lastDue = max(lastDue, due)
        if lastDue == now { return send(texts, fault) }
        context.eventLoop.assumeIsolated().scheduleTask(deadline: lastDue) { self.send(texts, self.fault) }
    }

    private func send(_ texts: [String], _ fault: StreamFault?) {
        guard !isEnding else { return }
        var buffer = ByteBuffer()
        for text in texts {
            var bytes = Array(text.utf8)
            if fault == .badUTF8 { bytes = Array(#"{"bad":""#.utf8) + [0xFF] + Array(#"","#.utf8) + bytes.dropFirst() }
            if fault == .fragments {
                let third = bytes.count / 3
                StreamFrame(isFinal: false, payload: bytes[..<third]).write(to: &buffer)
                StreamFrame(opcode: Self.ping, payload: Array("between".utf8)[...]).write(to: &buffer)
                StreamFrame(opcode: 0, isFinal: false, payload: bytes[third..<2 * third]).write(to: &buffer)
                StreamFrame(opcode: 0, payload: bytes[(2 * third)...]).write(to: &buffer)
                continue
            }
            StreamFrame(
                opcode: fault == .reservedOpcode ? 3 : 1, hasReservedBit: fault == .reservedBit,
                isMasked: fault == .masked, payload: bytes[...]
            ).write(to: &buffer)
        }
        if fault != .mute { world.count(stream, sent: texts.count) }
        write(buffer, fault)
    }

    private func control(_ opcode: UInt8, _ payload: some Sequence<UInt8>) {
        guard !isEnding else { return }
        var buffer = ByteBuffer()
        StreamFrame(opcode: opcode, payload: Array(payload)[...]).write(to: &buffer)
        write(buffer, fault)
    }

    private func write(_ buffer: ByteBuffer, _ fault: StreamFault?) {
        guard let context, fault != .mute else { return }
        guard fault == .bytes else { return context.writeAndFlush(wrapOutboundOut(buffer), promise: nil) }
        for byte in buffer.readableBytesView {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [byte])), promise: nil)
        }
    }
}

/// A frame of a venue's stream. Unlike NIO's frames, it is written to one buffer, and it can be invalid.
struct StreamFrame {
    var opcode: UInt8 = 1
    var isFinal = true
    var hasReservedBit = false
    var isMasked = false
    var payload: ArraySlice<UInt8>

    func write(to buffer: inout ByteBuffer) {
        buffer.writeInteger((isFinal ? 0x80 : 0) | (hasReservedBit ? 0x40 : 0) | opcode)
        let mask: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case ...125: buffer.writeInteger(mask | UInt8(payload.count))
        case ...65_535:
            buffer.writeInteger(mask | 126)
            buffer.writeInteger(UInt16(payload.count))
        default:
            buffer.writeInteger(mask | 127)
            buffer.writeInteger(UInt64(payload.count))
        }
        guard isMasked else {
            buffer.writeBytes(payload)
            return
        }
        let key: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        buffer.writeBytes(key)
        buffer.writeBytes(payload.enumerated().map { $0.element ^ key[$0.offset % 4] })
    }
}
