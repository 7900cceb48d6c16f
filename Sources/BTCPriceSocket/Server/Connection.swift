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
    private var waiting = 0
    private var mostWaiting: Int
    private var inputHasEnded = false
    private var isBroken = false
    /// Whether received calls are unprocessed because too many replies are queued. Until they are processed, nothing more is read.
    private var isHeldBack = false
    private var seen: UInt64 = 0
    /// When the current wait for the client began.
    private var since: BootTime

    init(limits: ServerLimits, at now: BootTime) {
        mostWaiting = limits.queuedBytes
        input = MessageBuffer(limit: limits.messageBytes)
        since = now
    }

    // MARK: State for the loop

    var isWatching: Bool {
        if case .watching = mode { true } else { false }
    }

    /// The currencies that it watches, or has watched.
    private(set) var watched: [String] = []

    /// Whether to read more input. False while too many replies are queued or a call is pending: the client has to wait.
    var wantsInput: Bool {
        guard case .calls = mode else { return false }
        return !inputHasEnded && !isBroken && !isHeldBack && waiting <= mostWaiting
    }

    var wantsOutput: Bool { !queue.isEmpty }

    /// Whether nothing is left to do, so that the connection can be closed.
    var isFinished: Bool {
        guard queue.isEmpty else { return false }
        if isBroken { return true }
        guard inputHasEnded, case .calls = mode else { return false }
        return true
    }

    /// Calls `body` with the bytes to write next. Requires ``wantsOutput``.
    func withOutput<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        queue[0].bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[headOffset...])) }
    }

    /// The epoll(7) events to register for.
    var interest: UInt32 { (wantsInput ? clinux_in : 0) | (wantsOutput ? clinux_out : 0) }

    /// Whether there is something to process now: received input, or the call for the next reply.
    var hasCallsWaiting: Bool {
        guard queue.isEmpty else { return false }
        if case .replying = mode { return true }
        return input.count > 0
    }

    /// What the server waits for now; `nil` during a pending call, and during a watch with nothing to send.
    var patience: Patience? {
        if !queue.isEmpty { return .write }
        guard case .calls = mode else { return nil }
        return input.count > 0 ? .message : .idle
    }

    /// What the client has taken too long to do; `nil` if nothing.
    func overdue(_ limits: ServerLimits, at now: BootTime) -> Patience? {
        guard let patience, now - since >= limits.timeout(patience).wholeMilliseconds else { return nil }
        return patience
    }

    // MARK: Events from the loop

    /// Processes bytes that were read.
    mutating func received(_ bytes: ArraySlice<UInt8>, replies: inout ReplyCache, at boottime: BootTime) -> Request? {
        // The first bytes of a call: ``ServerLimits/timeout`` starts here.
        if input.count == 0 { since = boottime }
        input.append(bytes)
        defer { input.detach() }
        return proceed(replies: &replies, at: boottime)
    }

    /// Records that the client has shut down its sending side. It still gets its replies.
    mutating func inputEnded() {
        inputHasEnded = true
    }

    /// Records that `count` bytes of ``withOutput(_:)`` were written.
    mutating func wrote(_ count: Int, at boottime: BootTime) {
        since = boottime
        waiting -= count
        headOffset += count
        guard let head = queue.first, headOffset == head.bytes.count else { return }
        headOffset = 0
        if queue.count == 1 {
            // The next state comes a second later. Ten thousand watchers would hold ten thousand empty buffers.
            queue.removeAll(keepingCapacity: !isWatching)
        } else {
            queue.removeFirst()
        }
    }

    /// Processes input received earlier, after replies were written or a pending call completed.
    mutating func proceed(replies: inout ReplyCache, at boottime: BootTime) -> Request? {
        if case .replying(let call) = mode {
            guard queue.isEmpty else { return nil }
            mode = .asking(call.method, replyWanted: true)
            return .ask(call)
        }
        while case .calls = mode, !isBroken {
            guard waiting <= mostWaiting else {
                // Count it only if there is input to hold back.
                if !isHeldBack, input.count > 0 {
                    replies.counts.heldBack += 1
                    isHeldBack = true
                }
                return nil
            }
            isHeldBack = false
            do throws(MessageError) {
                guard let message = try input.next() else { return nil }
                let call = try replies.call(message)
                replies.counts.calls += 1
                since = boottime
                if let request = take(call, replies: &replies, at: boottime) { return request }
            } catch {
                // As in systemd: no reply, and the connection ends. Replies already queued are still sent.
                isBroken = true
                if error == input.tooLong { replies.counts.tooLong += 1 }
            }
        }
        return nil
    }

    /// Reads the last calls of a client that has closed the connection. Those that change the daemon need no reply.
    /// - Returns: The calls that change the daemon, in order.
    mutating func lastOrders(_ bytes: ArraySlice<UInt8>) -> [PriceCall] {
        guard !isWatching, !isBroken else { return [] }
        input.append(bytes)
        var orders: [PriceCall] = []
        do throws(MessageError) {
            while let message = try input.next() {
                let call = try Call(decoding: message)
                guard case .success(let read)? = PriceCall.read(call) else { continue }
                // Calls after a watch are never processed.
                if case .watchPrice = read { break }
                if read.changesTheDaemon { orders.append(read) }
            }
        } catch {
            // The same error would have ended the connection.
        }
        return orders
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
        input = MessageBuffer(limit: 0)
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
            waiting += bytes.count - queue[index].bytes.count
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
        queue.append((bytes, currency))
        waiting += bytes.count
    }
}
