import BTCPriceCore
import CLinux

/// The protocol state of a connection, as a pure value: framing, the order of replies, the queue, the watch and the limits.
///
/// It takes the bytes that were read and provides the bytes to write. The loop does the I/O.
struct Connection {
    /// What the loop has to do for a connection besides reading and writing.
    enum Request: Equatable {
        /// Handle the call outside the loop; ``Connection/answered(_:replies:at:)`` takes the reply.
        case ask(PriceCall)
        /// Add it to the watchers of these currencies and updates; ``Connection/watch(_:maxAge:version:at:)`` takes the current states.
        case watch([String], WatchUpdates = .ticks, maxAge: Int64? = nil)
    }

    /// What the server waits for the client to do.
    enum Patience {
        /// Send a call.
        case idle
        /// Complete a call.
        case message
        /// Read its replies.
        case write
    }

    private enum Mode {
        case calls
        /// A call is pending. Replies keep the order of the calls, so no other call is processed.
        case asking(PriceMethod, replyWanted: Bool)
        /// A reply was queued, and more follow: this call produces them once the client has taken the first.
        case replying(PriceCall)
        /// A watch, with the age in milliseconds that ends it. Later calls are never processed.
        case watching(maxAge: Int64?)
    }

    private var input: MessageBuffer
    private var mode = Mode.calls
    /// The bytes to write. A state that is pushed to a watcher has its currency.
    private var queue: [(bytes: [UInt8], currency: String?)] = []
    private var headOffset = 0
    /// The bytes in ``queue``.
    private var queuedBytes = 0
    /// The currencies of which the client may not have read a state yet that was written.
    private var unread: [String] = []
    /// Whether the state at the head waits until the client has read the one before.
    private var isWithheld = false
    private var inputHasEnded = false
    private var isBroken = false
    /// Whether ``input`` may hold a complete call.
    private var mayHoldCalls = false
    private var seen: UInt64 = 0
    /// When the current wait for the client began.
    private(set) var since: BootTime

    init(limits: ServerLimits, at now: BootTime) {
        input = MessageBuffer(limit: limits.messageBytes)
        since = now
    }

    // MARK: State for the loop

    var isWatching: Bool {
        if case .watching = mode { true } else { false }
    }

    /// The currencies that it watches, or has watched.
    private(set) var watched: [String] = []

    /// Whether to read more input. False while a reply is unsent or a call is unprocessed: the client has to wait.
    var wantsInput: Bool {
        guard case .calls = mode else { return false }
        return queue.isEmpty && !mayHoldCalls && !inputHasEnded && !isBroken
    }

    var wantsOutput: Bool { !queue.isEmpty }

    /// Whether nothing is left to do, so that the connection can be closed.
    var isFinished: Bool {
        guard queue.isEmpty else { return false }
        if isBroken { return true }
        guard inputHasEnded, case .calls = mode else { return false }
        return !mayHoldCalls
    }

    /// Calls `body` with the bytes to write next. Requires ``wantsOutput``.
    func withOutput<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        queue[0].bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[headOffset...])) }
    }

    /// Whether the bytes at the head may be written now. A state waits for a client that has not read the one before of its currency: what
    /// is in the kernel's buffer can't be replaced by a newer one.
    /// - Parameter isRead: Whether the client has read everything that was written.
    mutating func mayWrite(_ isRead: () -> Bool) -> Bool {
        guard headOffset == 0, let currency = queue[0].currency, unread.contains(currency) else { return true }
        isWithheld = !isRead()
        if !isWithheld { unread.removeAll(keepingCapacity: true) }
        return !isWithheld
    }

    /// The epoll(7) events to register for. A client that has to read first makes the socket ready with each reading: edge-triggered, since
    /// there is room for more all the time.
    var interest: UInt32 {
        (wantsInput ? clinux_in : 0) | (wantsOutput ? isWithheld ? clinux_out | clinux_edge : clinux_out : 0)
    }

    /// Whether there is something to process now: received input, or the call for the next reply.
    var hasCallsWaiting: Bool {
        guard queue.isEmpty, !isBroken else { return false }
        return switch mode {
        case .replying: true
        case .calls: mayHoldCalls
        case .asking, .watching: false
        }
    }

    /// The memory that its bytes take: replies to write, and input that was read ahead.
    var heldBytes: Int { queuedBytes + queue.count * Self.bytesPerReply + input.heldBytes }

    /// About what a queued reply takes in addition to its bytes.
    private static let bytesPerReply = 96

    /// What the server waits for now; `nil` during a pending call, and during a watch with nothing to send.
    var patience: Patience? {
        if !queue.isEmpty { return .write }
        guard case .calls = mode, !mayHoldCalls else { return nil }
        return input.count > 0 ? .message : .idle
    }

    /// What the client has taken too long to do; `nil` if nothing.
    func overdue(_ limits: ServerLimits, at now: BootTime) -> Patience? {
        guard let patience, now - since >= limits.timeout(patience).wholeMilliseconds else { return nil }
        return patience
    }

    // MARK: Events from the loop

    /// Takes bytes that were read. ``proceed(replies:at:)`` processes them.
    mutating func received(_ bytes: ArraySlice<UInt8>, at boottime: BootTime) {
        // The first bytes of a call: ``ServerLimits/timeout`` starts here.
        if input.count == 0 { since = boottime }
        input.append(bytes)
        mayHoldCalls = true
    }

    /// Records that the client has shut down its sending side. It still gets its replies.
    mutating func inputEnded() {
        inputHasEnded = true
    }

    /// Records that `count` bytes of ``withOutput(_:)`` were written.
    mutating func wrote(_ count: Int, at boottime: BootTime) {
        since = boottime
        queuedBytes -= count
        headOffset += count
        guard let head = queue.first, headOffset == head.bytes.count else { return }
        if let currency = head.currency { unread.append(currency) }
        headOffset = 0
        if queue.count == 1 {
            // The next state comes a second later. Ten thousand watchers would hold ten thousand empty buffers.
            queue.removeAll(keepingCapacity: !isWatching)
        } else {
            queue.removeFirst()
        }
    }

    /// Processes a turn's calls. Has no effect until all replies are written.
    mutating func proceed(replies: inout ReplyCache, at boottime: BootTime) -> Request? {
        guard hasCallsWaiting else { return nil }
        // What was read is in memory that the next connection uses, too.
        defer {
            input.detach()
            if input.count == 0 { mayHoldCalls = false }
        }
        if case .replying(let call) = mode {
            mode = .asking(call.method, replyWanted: true)
            return .ask(call)
        }
        do throws(MessageError) {
            for _ in 0..<ServerLimits.callsPerTurn {
                guard let message = try input.next() else {
                    mayHoldCalls = false
                    return nil
                }
                let call = try replies.call(message)
                replies.counts.calls += 1
                since = boottime
                if let request = take(call, replies: &replies, at: boottime) { return request }
            }
        } catch {
            // As in systemd: no reply, and the connection ends. Replies already queued are still sent.
            isBroken = true
            if error == input.tooLong { replies.hit(.messageBytes) }
        }
        return nil
    }

    /// Takes the reply to the pending call.
    mutating func answered(_ answer: CallAnswer, replies: inout ReplyCache, at boottime: BootTime) {
        guard case .asking(let method, let replyWanted) = mode else { return }
        mode = .calls
        since = boottime
        if let next = answer.next, replyWanted {
            mode = .replying(next)
        } else {
            replies.counts.replied.add(method, isError: answer.isError)
        }
        if replyWanted { send(answer.bytes) }
    }

    /// Makes the connection a watcher and queues the current state of each currency.
    /// - Parameters:
    ///   - states: The states; `nil` for one that is left out.
    ///   - maxAge: The age of a price that ends the watch, milliseconds; `nil` for none.
    mutating func watch(
        _ states: [(bytes: [UInt8]?, currency: String)], maxAge: Int64? = nil, version: UInt64, at boottime: BootTime
    ) {
        mode = .watching(maxAge: maxAge)
        watched = states.map(\.currency)
        since = boottime
        // Nothing more is read, so drop the received input.
        (input, mayHoldCalls) = (MessageBuffer(limit: 0), false)
        seen = version
        for case (let bytes?, let currency) in states { send(bytes, currency) }
    }

    /// Ends the watch with an error. When it is sent, the connection can be closed.
    mutating func endWatch(_ error: Reply, at boottime: BootTime) {
        guard isWatching else { return }
        if queue.isEmpty { since = boottime }
        mode = .calls
        isBroken = true
        send(error.encoded())
    }

    /// Queues a new state for a watcher of its currency. It replaces an older one that is not partly sent, so that there is no backlog.
    /// - Parameter bytes: The state as a reply.
    mutating func publish(_ bytes: [UInt8], _ state: PriceState, version: UInt64, at boottime: BootTime) {
        let currency = state.currency
        guard case .watching(let maxAge) = mode, watched.contains(currency), version > seen
        else { return }
        seen = version
        switch TooOld(state, maxAge, at: boottime) {
        case nil: break
        case .waits: return
        case .refuses(let error): return endWatch(error, at: boottime)
        }
        // If output is queued, the write timeout already runs.
        if queue.isEmpty { since = boottime }
        if let index = queue.lastIndex(where: { $0.currency == currency }), index > 0 || headOffset == 0 {
            queuedBytes += bytes.count - queue[index].bytes.count
            queue[index].bytes = bytes
        } else {
            send(bytes, currency)
        }
    }

    // MARK: Calls

    private mutating func take(_ call: Call, replies: inout ReplyCache, at boottime: BootTime) -> Request? {
        if let read = PriceCall.read(call) { return take(read, of: call, replies: &replies, at: boottime) }
        let reply: Reply =
            switch call.interface.map(String.init) {
            case PriceInterface.name, HistoryInterface.name, nil: .methodNotFound(call.method)
            case ServiceInterface.name: ServiceInterface.reply(to: call)
            case let other?: .interfaceNotFound(other)
            }
        answer(call, reply, as: .other, &replies)
        return nil
    }

    private mutating func take(
        _ read: Result<PriceCall, PriceCall.Refusal>, of call: Call, replies: inout ReplyCache, at boottime: BootTime
    ) -> Request? {
        switch read {
        case .failure(let refusal): answer(call, refusal.reply, as: .other, &replies)
        case .success(let read) where read.unknown(among: replies.currencies) != nil:
            let known = replies.currencies
            answer(
                call, .unknownCurrency(read.unknown(among: known) ?? "", known: known), as: read.method, &replies)
        case .success(.watchPrice(let named, let updates, let maxAge)):
            let currencies = named ?? Array(replies.currencies.prefix(1))
            for case .refuses(let error) in currencies.map({ replies.tooOld($0, maxAge, at: boottime) }) {
                answer(call, error, as: .watchPrice, &replies)
                return nil
            }
            return .watch(currencies, updates, maxAge: maxAge)
        case .success(.getPrice(.localFirst, let currency, let maxAge)) where replies.holdsPrice(currency):
            switch replies.tooOld(currency, maxAge, at: boottime) {
            case nil:
                replies.counts.replied.add(.getPrice, isError: false)
                if !call.oneway { send(replies.reply(currency, continues: false, at: boottime)) }
            case .refuses(let error): answer(call, error, as: .getPrice, &replies)
            case .waits: return ask(.getPrice(.localFirst, currency, maxAge: maxAge), of: call, &replies)
            }
            replies.counts.priceCalls += 1
        case .success(let read): return ask(read, of: call, &replies)
        }
        return nil
    }

    private mutating func ask(_ read: PriceCall, of call: Call, _ replies: inout ReplyCache) -> Request {
        if case .getPrice = read { replies.counts.priceCalls += 1 }
        mode = .asking(read.method, replyWanted: !call.oneway)
        return .ask(read)
    }

    private mutating func answer(
        _ call: Call, _ reply: Reply, as method: PriceMethod, _ replies: inout ReplyCache
    ) {
        replies.counts.replied.add(method, isError: reply.error != nil)
        if !call.oneway { send(reply.encoded()) }
    }

    private mutating func send(_ bytes: [UInt8], _ currency: String? = nil) {
        queuedBytes += bytes.count
        // The replies of a turn are written at once.
        if currency == nil, let last = queue.indices.last, queue[last].currency == nil {
            queue[last].bytes.append(contentsOf: bytes)
        } else {
            queue.append((bytes, currency))
        }
    }
}
