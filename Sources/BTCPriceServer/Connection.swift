import BTCPriceCore
import BTCPriceAPI
import CLinux
import Varlink

/// What a connection does, as a pure value: framing, the order of replies, the queue, the watch and the limits.
///
/// It is given what was read and asked for what to write; the loop does both.
struct Connection {
    /// What the loop is to do for a connection beside reading and writing.
    enum Request: Equatable {
        /// Have it answered elsewhere; ``Connection/answered(_:)`` takes the reply.
        case ask(PriceCall)
        /// Enter it among the watchers; ``Connection/watch(_:version:)`` takes the current state.
        case watch
    }

    /// What a client is waited for.
    enum Patience {
        /// A call.
        case idle
        /// The rest of a call.
        case message
        /// That it reads.
        case write
    }

    private enum Mode {
        case calls
        /// An answer is on its way. Replies come in the order of the calls, so nothing else is looked at.
        case asking(replyWanted: Bool)
        /// A watch never ends by itself, so calls behind it are never answered.
        case watching
    }

    private var input: MessageBuffer
    private var mode = Mode.calls
    private var queue: [[UInt8]] = []
    private var headOffset = 0
    private var waiting = 0
    private var mostWaiting: Int
    private var lastIsState = false
    private var inputHasEnded = false
    private var isBroken = false
    /// Whether there are calls that were read and not looked at, since replies pile up. Until they are nothing more is read.
    private var isHeldBack = false
    private var seen: UInt64 = 0
    /// Since when the client is waited for, `CLOCK_BOOTTIME` in milliseconds.
    private var since: Int64

    /// - Parameters:
    ///   - limits: What the client is granted.
    ///   - now: `CLOCK_BOOTTIME`, milliseconds.
    init(limits: ServerLimits, at now: Int64) {
        mostWaiting = limits.queuedBytes
        input = MessageBuffer(limit: limits.messageBytes)
        since = now
    }

    // MARK: What the loop asks

    var isWatching: Bool {
        if case .watching = mode { true } else { false }
    }

    /// Whether more input is wanted. Not while replies pile up, nor while a call is under way: then the client waits.
    var wantsInput: Bool {
        guard case .calls = mode else { return false }
        return !inputHasEnded && !isBroken && !isHeldBack && waiting <= mostWaiting
    }

    var wantsOutput: Bool { !queue.isEmpty }

    /// Whether there is nothing left to do for this client.
    var isFinished: Bool {
        guard queue.isEmpty else { return false }
        if isBroken { return true }
        guard inputHasEnded, case .calls = mode else { return false }
        return true
    }

    /// Hands out the bytes to write next, of which there are some (``wantsOutput``).
    func withOutput<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        queue[0].withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[headOffset...])) }
    }

    /// The events of epoll(7) that matter.
    var interest: UInt32 { (wantsInput ? clinux_in : 0) | (wantsOutput ? clinux_out : 0) }

    /// Whether calls were read that can be looked at now.
    var hasCallsWaiting: Bool { queue.isEmpty && input.count > 0 }

    /// What it is waited for now; `nil` while there is nothing to wait for, or an answer of ours.
    var patience: Patience? {
        if !queue.isEmpty { return .write }
        guard case .calls = mode else { return nil }
        return input.count > 0 ? .message : .idle
    }

    /// What the client has taken too long for, if it has.
    func overdue(_ limits: ServerLimits, at now: Int64) -> Patience? {
        guard let patience, let timeout = limits.timeout(patience), now - since >= timeout.wholeMilliseconds else {
            return nil
        }
        return patience
    }

    // MARK: What the loop tells

    /// Bytes were read.
    mutating func received(_ bytes: ArraySlice<UInt8>, replies: inout ReplyCache, at boottime: Int64) -> Request? {
        // The first bytes of a call: from here on it has to come to its end.
        if input.count == 0 { since = boottime }
        input.append(bytes)
        defer { input.detach() }
        return proceed(replies: &replies, at: boottime)
    }

    /// The client has shut down its sending side. It still gets its replies.
    mutating func inputEnded() {
        inputHasEnded = true
    }

    /// This many bytes of ``output`` were written.
    mutating func wrote(_ count: Int, at boottime: Int64) {
        since = boottime
        waiting -= count
        headOffset += count
        guard let head = queue.first, headOffset == head.count else { return }
        headOffset = 0
        if queue.count == 1 {
            // A watcher waits a second for the next one, and ten thousand of them hold ten thousand empty buffers.
            queue.removeAll(keepingCapacity: !isWatching)
            lastIsState = false
        } else {
            queue.removeFirst()
        }
    }

    /// Looks at what was read before, now that there is room or an answer.
    mutating func proceed(replies: inout ReplyCache, at boottime: Int64) -> Request? {
        while case .calls = mode, !isBroken {
            guard waiting <= mostWaiting else {
                // Only where there is something that it holds back.
                if !isHeldBack, input.count > 0 {
                    replies.counts.heldBack += 1
                    isHeldBack = true
                }
                return nil
            }
            isHeldBack = false
            do throws(MessageError) {
                guard let message = try input.next() else { return nil }
                let call = try Call(decoding: message)
                replies.counts.calls += 1
                since = boottime
                if let request = take(call, replies: &replies, at: boottime) { return request }
            } catch {
                // As systemd does: no reply, the connection ends. What was answered before is still sent.
                isBroken = true
                if error == input.tooLong { replies.counts.tooLong += 1 }
            }
        }
        return nil
    }

    /// The client has gone. What it sent last is looked at for what changes the daemon: that needs nobody who is told.
    /// - Returns: Such calls, in their order.
    mutating func lastOrders(_ bytes: ArraySlice<UInt8>) -> [PriceCall] {
        guard !isWatching, !isBroken else { return [] }
        input.append(bytes)
        var orders: [PriceCall] = []
        do throws(MessageError) {
            while let message = try input.next() {
                let call = try Call(decoding: message)
                guard case .success(let read)? = PriceCall.read(call) else { continue }
                // Calls behind a watch are never looked at.
                if read == .watchPrice { break }
                if read.changesTheDaemon { orders.append(read) }
            }
        } catch {
            // As it would have ended the connection.
        }
        return orders
    }

    /// What it asked for is answered.
    mutating func answered(_ reply: Reply, at boottime: Int64) {
        guard case .asking(let replyWanted) = mode else { return }
        mode = .calls
        since = boottime
        if replyWanted { send(reply.encoded()) }
    }

    /// It is a watcher from now on, and this is the current state.
    mutating func watch(_ bytes: [UInt8], version: UInt64, at boottime: Int64) {
        mode = .watching
        since = boottime
        // Nothing more is read: what lay there need not be held.
        input = MessageBuffer(limit: 0)
        seen = version
        send(bytes)
        lastIsState = true
    }

    /// A new state for a watcher. One that it has not begun to read is replaced: it gets the newest next, not a backlog.
    mutating func publish(_ bytes: [UInt8], version: UInt64, at boottime: Int64) {
        guard isWatching, version > seen else { return }
        seen = version
        // What lies there already is what it is waited for.
        if queue.isEmpty { since = boottime }
        let lastIsUntouched = queue.count > 1 || headOffset == 0
        if lastIsState, lastIsUntouched, let last = queue.last {
            waiting += bytes.count - last.count
            queue[queue.count - 1] = bytes
        } else {
            send(bytes)
            lastIsState = true
        }
    }

    // MARK: Calls

    private mutating func take(_ call: Call, replies: inout ReplyCache, at boottime: Int64) -> Request? {
        if let read = PriceCall.read(call) { return take(read, of: call, replies: &replies, at: boottime) }
        switch call.interface.map(String.init) {
        case PriceInterface.name: answer(call, .methodNotFound(call.method))
        case ServiceInterface.name: answer(call, replies.service.reply(to: call))
        case let other?: answer(call, .interfaceNotFound(other))
        case nil: answer(call, .methodNotFound(call.method))
        }
        return nil
    }

    private mutating func take(
        _ read: Result<PriceCall, PriceCall.Refusal>, of call: Call, replies: inout ReplyCache, at boottime: Int64
    ) -> Request? {
        switch read {
        case .failure(let refusal): answer(call, refusal.reply)
        case .success(.watchPrice): return .watch
        case .success(.getPrice(.localFirst)) where replies.holdsPrice:
            replies.counts.priceCalls += 1
            if !call.oneway { send(replies.reply(continues: false, at: boottime)) }
        case .success(let read):
            if case .getPrice = read { replies.counts.priceCalls += 1 }
            mode = .asking(replyWanted: !call.oneway)
            return .ask(read)
        }
        return nil
    }

    private mutating func answer(_ call: Call, _ reply: Reply) {
        if !call.oneway { send(reply.encoded()) }
    }

    private mutating func send(_ bytes: [UInt8]) {
        queue.append(bytes)
        waiting += bytes.count
        lastIsState = false
    }
}
