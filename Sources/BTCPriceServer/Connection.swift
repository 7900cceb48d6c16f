import BTCPriceCore
import BTCPriceVarlink
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

    private enum Mode {
        case calls
        /// An answer is on its way. Replies come in the order of the calls, so nothing else is looked at.
        case asking(replyWanted: Bool)
        /// A watch never ends by itself, so calls behind it are never answered.
        case watching
    }

    private let service: ServiceInterface
    private let queuedBytes: Int
    private var input: MessageBuffer
    private var mode = Mode.calls
    private var queue: [[UInt8]] = []
    private var headOffset = 0
    private var waiting = 0
    private var lastIsState = false
    private var inputHasEnded = false
    private var isBroken = false
    private var isHeldBack = false
    private var seen: UInt64 = 0

    init(service: ServiceInterface, limits: ServerLimits) {
        self.service = service
        queuedBytes = limits.queuedBytes
        input = MessageBuffer(limit: limits.messageBytes)
    }

    // MARK: What the loop asks

    var isWatching: Bool {
        if case .watching = mode { true } else { false }
    }

    /// Whether more input is wanted. Not while replies pile up, nor while a call is under way: then the client waits.
    var wantsInput: Bool {
        guard case .calls = mode else { return false }
        return !inputHasEnded && !isBroken && waiting <= queuedBytes
    }

    var wantsOutput: Bool { !queue.isEmpty }

    /// Whether there is nothing left to do for this client.
    var isFinished: Bool {
        guard queue.isEmpty else { return false }
        if isBroken { return true }
        guard inputHasEnded, case .calls = mode else { return false }
        return true
    }

    /// The bytes to write next.
    var output: ArraySlice<UInt8>? { queue.first?[headOffset...] }

    // MARK: What the loop tells

    /// Bytes were read.
    mutating func received(_ bytes: some Collection<UInt8>, board: inout Board, at boottime: Int64) -> Request? {
        input.append(bytes)
        return proceed(board: &board, at: boottime)
    }

    /// The client has shut down its sending side. It still gets its replies.
    mutating func inputEnded() {
        inputHasEnded = true
    }

    /// This many bytes of ``output`` were written.
    mutating func wrote(_ count: Int) {
        waiting -= count
        if waiting <= queuedBytes { isHeldBack = false }
        headOffset += count
        guard let head = queue.first, headOffset == head.count else { return }
        queue.removeFirst()
        headOffset = 0
        if queue.isEmpty { lastIsState = false }
    }

    /// Looks at what was read before, now that there is room or an answer.
    mutating func proceed(board: inout Board, at boottime: Int64) -> Request? {
        while case .calls = mode, !isBroken {
            guard waiting <= queuedBytes else {
                if !isHeldBack { board.counts.heldBack += 1 }
                isHeldBack = true
                return nil
            }
            do throws(MessageError) {
                guard let message = try input.next() else { return nil }
                let call = try Call(decoding: message)
                board.counts.calls += 1
                if let request = take(call, board: &board, at: boottime) { return request }
            } catch {
                // As systemd does: no reply, the connection ends. What was answered before is still sent.
                isBroken = true
                if error == input.tooLong { board.counts.tooLong += 1 }
            }
        }
        return nil
    }

    /// What it asked for is answered.
    mutating func answered(_ reply: Reply) {
        guard case .asking(let replyWanted) = mode else { return }
        mode = .calls
        if replyWanted { send(reply.encoded()) }
    }

    /// It is a watcher from now on, and this is the current state.
    mutating func watch(_ bytes: [UInt8], version: UInt64) {
        mode = .watching
        seen = version
        send(bytes)
        lastIsState = true
    }

    /// A new state for a watcher. One that it has not begun to read is replaced: it gets the newest next, not a backlog.
    mutating func publish(_ bytes: [UInt8], version: UInt64) {
        guard isWatching, version > seen else { return }
        seen = version
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

    private mutating func take(_ call: Call, board: inout Board, at boottime: Int64) -> Request? {
        guard let (interface, name) = call.target else {
            answer(call, .methodNotFound(call.method))
            return nil
        }
        switch interface {
        case ServiceInterface.name: answer(call, service.reply(to: name, call))
        case PriceInterface.name: return take(PriceCall.read(name, call), of: call, board: &board, at: boottime)
        default: answer(call, .interfaceNotFound(String(interface)))
        }
        return nil
    }

    private mutating func take(
        _ read: Result<PriceCall, PriceCall.Refusal>, of call: Call, board: inout Board, at boottime: Int64
    ) -> Request? {
        switch read {
        case .failure(let refusal): answer(call, refusal.reply)
        case .success(.watchPrice): return .watch
        case .success(.getPrice(.localFirst)) where board.holdsPrice:
            board.counts.priceCalls += 1
            if !call.oneway { send(board.reply(continues: false, at: boottime)) }
        case .success(let read):
            if case .getPrice = read { board.counts.priceCalls += 1 }
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
