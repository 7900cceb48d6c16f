import BTCPriceCore
import BTCPriceVarlink
import CEpoll
import Glibc
import Varlink

/// The epoll loop: it owns every connection and runs on a thread of its own. Nothing in it is shared, the inbox apart.
struct EventLoop: ~Copyable {
    /// What the loop needs from outside.
    struct Environment: Sendable {
        let listener: ListeningSocket
        let inbox: Inbox
        let service: ServiceInterface
        let instance: String
        let limits: ServerLimits
        let now: TimeSource
        let activity: ClientActivity
        let administrators: Administrators
        let answer: PriceServer.Answer
        let wake: @Sendable () async -> Void
        let report: @Sendable (ServerEvent) -> Void
    }

    private static let listenerTag = UInt64.max
    private static let inboxTag = UInt64.max - 1
    /// How long accepting pauses once the descriptors are used up, unless a connection ends before, milliseconds.
    private static let acceptPause: Int64 = 1000

    private let environment: Environment
    private let epoll: Int32
    private var board: Board
    private var table = ConnectionTable()
    private var watchers = Watchers()
    /// The state that is on its way to the watchers.
    private var fanOut: (bytes: [UInt8], version: UInt64)?
    /// Until when accepting pauses, `CLOCK_BOOTTIME` in milliseconds.
    private var acceptAgainAt: Int64?
    private var mustStop = false
    private var refused: (inAll: Int64, ofUser: Int64) = (0, 0)
    /// The price calls that are known to ``ClientActivity``.
    private var toldPriceCalls: Int64 = 0
    /// `CLOCK_BOOTTIME` in milliseconds when the events came that are being looked at.
    private var boottime: Int64
    /// When the connections are looked at for one that has taken too long.
    private var sweepAt: Int64?
    /// The calls that are being answered elsewhere.
    private var pending = 0
    private var overdue: (idle: Int64, message: Int64, write: Int64) = (0, 0, 0)
    private var refusedCalls: Int64 = 0

    init(_ environment: Environment) throws(SocketError) {
        self.environment = environment
        board = Board(instance: environment.instance, service: environment.service, limits: environment.limits)
        boottime = environment.now().boottime
        epoll = cepoll_create()
        guard epoll >= 0 else { throw SocketError("cannot make an epoll instance: \(systemError(errno))") }
        guard cepoll_add(epoll, environment.listener.descriptor, cepoll_in, Self.listenerTag) == 0,
            cepoll_add(epoll, environment.inbox.wakeDescriptor, cepoll_in, Self.inboxTag) == 0
        else {
            // The deinitialiser closes what is open by now.
            throw SocketError("cannot watch the socket: \(systemError(errno))")
        }
    }

    deinit {
        for descriptor in table.descriptors { close(descriptor) }
        close(epoll)
    }

    mutating func run() {
        var events = [cepoll_event](repeating: cepoll_event(), count: 64)
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while !mustStop {
            let ready = Int(max(0, cepoll_wait(epoll, &events, Int32(events.count), timeout)))
            // Once for all of them: they are answered within the same millisecond.
            boottime = environment.now().boottime
            if let acceptAgainAt, boottime >= acceptAgainAt { resumeAccepting() }
            for index in 0..<ready {
                switch events[index].tag {
                case Self.listenerTag: accept()
                case Self.inboxTag: takeDelivery()
                default: serve(events[index], &buffer)
                }
            }
            tellOfPriceCalls()
            continueFanOut(atMost: board.limits.watchersPerTurn)
            sweep()
        }
    }

    /// How long there is nothing to do but for events, milliseconds; -1 for ever.
    private var timeout: Int32 {
        if fanOut != nil { return 0 }
        let next = min(acceptAgainAt ?? .max, sweepAt ?? .max)
        return next == .max ? -1 : Int32(clamping: max(0, next - boottime))
    }

    // MARK: Time-outs

    /// Ends the connections whose clients have taken too long.
    private mutating func sweep() {
        guard table.count > 0, let period = board.limits.sweepPeriod else {
            sweepAt = nil
            return
        }
        guard let due = sweepAt else {
            sweepAt = boottime + period.wholeMilliseconds
            return
        }
        guard boottime >= due else { return }
        sweepAt = boottime + period.wholeMilliseconds
        for descriptor in table.descriptors {
            guard let patience = table[descriptor]?.connection.overdue(board.limits, at: boottime) else { continue }
            switch patience {
            case .idle: overdue.idle += 1
            case .message: overdue.message += 1
            case .write: overdue.write += 1
            }
            drop(descriptor)
        }
    }

    // MARK: Deliveries

    private mutating func takeDelivery() {
        let delivery = environment.inbox.take()
        if delivery.beat > 0 { environment.inbox.beat(delivery.beat) }
        if delivery.stop { mustStop = true }
        if let limits = delivery.limits {
            board.limits = limits
            sweepAt = nil
        }
        pending -= delivery.answers.count
        for (tag, reply) in delivery.answers {
            guard let descriptor = table.descriptor(of: tag) else { continue }
            table[descriptor]?.answer = nil
            table[descriptor]?.connection.answered(reply, at: boottime)
            takeCallsReadBefore(descriptor)
            flush(descriptor)
        }
        for (state, version) in delivery.fanOut {
            // A tick that comes before everybody has the last one: nobody may miss a tick over our slicing.
            continueFanOut(atMost: .max)
            let bytes = Board.reply(state.told(at: boottime), instance: environment.instance, continues: true)
            fanOut = (bytes, version)
            watchers.beginFanOut()
        }
    }

    private mutating func continueFanOut(atMost limit: Int) {
        guard let (bytes, version) = fanOut else { return }
        var left = limit
        while left > 0 {
            guard let descriptor = watchers.nextToServe() else {
                fanOut = nil
                return
            }
            table[descriptor]?.connection.publish(bytes, version: version, at: boottime)
            flush(descriptor)
            left -= 1
        }
    }

    // MARK: Coming and going

    private mutating func accept() {
        // A few at a time: whoever connects without end must not keep the others waiting.
        for _ in 0..<64 {
            let descriptor = cepoll_accept(environment.listener.descriptor)
            if descriptor >= 0 {
                admit(descriptor)
                continue
            }
            switch errno {
            case EAGAIN, EINTR, ECONNABORTED: return
            default:
                // EMFILE and its like: level-triggered, it would be reported without end.
                environment.report(.acceptFailed(reason: systemError(errno)))
                acceptAgainAt = boottime + Self.acceptPause
                _ = cepoll_remove(epoll, environment.listener.descriptor)
                return
            }
        }
    }

    private mutating func resumeAccepting() {
        let isBack = cepoll_add(epoll, environment.listener.descriptor, cepoll_in, Self.listenerTag) == 0
        acceptAgainAt = isBack ? nil : boottime + Self.acceptPause
    }

    private mutating func admit(_ descriptor: Int32) {
        let uid = UInt32(truncatingIfNeeded: cepoll_peer_uid(descriptor))
        let limits = board.limits
        guard table.count < limits.connections else {
            refused.inAll += 1
            environment.report(.tooManyConnections(limit: limits.connections))
            close(descriptor)
            return
        }
        guard table.count(of: uid) < limits.connectionsPerUser else {
            refused.ofUser += 1
            environment.report(.tooManyConnectionsOfUser(uid: uid, limit: limits.connectionsPerUser))
            close(descriptor)
            return
        }
        var size = limits.sendBufferBytes
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout.size(ofValue: size)))
        let tag = table.add(
            Connection(limits: limits, at: boottime), descriptor: descriptor, uid: uid, interest: cepoll_in)
        if cepoll_add(epoll, descriptor, cepoll_in, tag) != 0 { drop(descriptor) }
    }

    private mutating func drop(_ descriptor: Int32) {
        if watchers.leave(descriptor) {
            environment.inbox.leaveWatcher()
            environment.activity.watcherLeft(at: boottime)
        }
        // Nobody is left to tell: a fetch that no other client waits for ends here.
        table[descriptor]?.answer?.cancel()
        table.remove(descriptor)
        close(descriptor)
        if acceptAgainAt != nil { resumeAccepting() }
    }

    // MARK: Reading and writing

    private mutating func serve(_ event: cepoll_event, _ buffer: inout [UInt8]) {
        guard let descriptor = table.descriptor(of: event.tag) else { return }
        // Both directions are shut: whatever it still asked for, nobody is left to tell.
        if event.events & (cepoll_hup | cepoll_err) != 0 {
            drop(descriptor)
            return
        }
        if event.events & cepoll_in != 0 { readInput(descriptor, &buffer) }
        flush(descriptor)
    }

    private mutating func readInput(_ descriptor: Int32, _ buffer: inout [UInt8]) {
        // A few at a time: whoever sends without end gets its turns like everybody else.
        for _ in 0..<4 {
            guard table.with(descriptor, { $0.connection.wantsInput }) == true else { return }
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count > 0 {
                environment.inbox.refresh(&board)
                let now = boottime
                let request = table.with(descriptor) {
                    $0.connection.received(buffer.span.extracting(first: count), board: &board, at: now)
                }
                if let request, let request { fulfil(request, descriptor) }
                // A short read has emptied the socket.
                if count < buffer.count { return }
            } else if count == 0 {
                table[descriptor]?.connection.inputEnded()
            } else if errno != EINTR {
                return
            }
        }
    }

    private mutating func takeCallsReadBefore(_ descriptor: Int32) {
        environment.inbox.refresh(&board)
        if let request = table[descriptor]?.connection.proceed(board: &board, at: boottime) {
            fulfil(request, descriptor)
        }
    }

    private mutating func fulfil(_ request: Connection.Request, _ descriptor: Int32) {
        switch request {
        case .watch:
            environment.inbox.enterWatcher(&board)
            watchers.enter(descriptor)
            environment.activity.watcherCame()
            priceIsWanted()
            let state = board.reply(continues: true, at: boottime)
            table[descriptor]?.connection.watch(state, version: board.version, at: boottime)
        case .ask(let call): ask(call, descriptor)
        }
    }

    /// Has a call answered elsewhere.
    private mutating func ask(_ call: PriceCall, _ descriptor: Int32) {
        let tag = table.tag(of: descriptor)
        pending += 1
        guard !call.changesTheDaemon || environment.administrators.include(peerOf: descriptor) else {
            environment.inbox.answer(tag, .permissionDenied)
            return
        }
        guard pending <= board.limits.pendingCalls else {
            refusedCalls += 1
            environment.inbox.answer(tag, .busy(limit: board.limits.pendingCalls))
            return
        }
        let counts = clientCounts
        let uid = table[descriptor]?.uid ?? .max
        table[descriptor]?.answer = Task { [environment] in
            environment.inbox.answer(tag, await environment.answer(call, uid, counts))
        }
    }

    private mutating func tellOfPriceCalls() {
        guard board.counts.priceCalls != toldPriceCalls else { return }
        toldPriceCalls = board.counts.priceCalls
        priceIsWanted()
    }

    private func priceIsWanted() {
        guard environment.activity.called(at: boottime) else { return }
        Task { [environment] in await environment.wake() }
    }

    private var clientCounts: ClientCounts {
        ClientCounts(
            connections: table.count, users: table.users, watchers: watchers.count, calls: board.counts.calls,
            limits: board.limits, refused: refused.inAll, refusedOfUser: refused.ofUser,
            tooLong: board.counts.tooLong, heldBack: board.counts.heldBack, refusedCalls: refusedCalls,
            idle: overdue.idle, slowMessages: overdue.message, slowReaders: overdue.write)
    }

    /// What writing has come to.
    private enum Written {
        case asMuchAsPossible
        /// There is room for calls that were read before.
        case callsWait
        case failed
    }

    /// Writes what can be written, and asks for the events that matter from here on.
    private mutating func flush(_ descriptor: Int32) {
        var written = write(descriptor)
        while case .callsWait = written {
            takeCallsReadBefore(descriptor)
            // Without a reply, what is left is the beginning of a call.
            guard table[descriptor]?.connection.wantsOutput == true else { break }
            written = write(descriptor)
        }
        if case .failed = written { return drop(descriptor) }
        let change = table.with(descriptor) { slot -> (isFinished: Bool, events: UInt32)? in
            let events = slot.connection.interest
            guard events != slot.interest else { return nil }
            slot.interest = events
            return (slot.connection.isFinished, events)
        }
        guard let change, let change else { return }
        if change.isFinished { return drop(descriptor) }
        _ = cepoll_modify(epoll, descriptor, change.events, table.tag(of: descriptor))
    }

    private mutating func write(_ descriptor: Int32) -> Written {
        let now = boottime
        return table.with(descriptor) { slot in
            while slot.connection.wantsOutput {
                let count = slot.connection.withOutput {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count >= 0 {
                    slot.connection.wrote(count, at: now)
                } else if errno == EAGAIN {
                    return .asMuchAsPossible
                } else if errno != EINTR {
                    return .failed
                }
            }
            return slot.connection.hasCallsWaiting ? .callsWait : .asMuchAsPossible
        } ?? .asMuchAsPossible
    }
}
