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
    private var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    private var mustStop = false
    private var refused: (inAll: Int64, ofUser: Int64) = (0, 0)
    /// The price calls that are known to ``ClientActivity``.
    private var toldPriceCalls: Int64 = 0

    init(_ environment: Environment) throws(SocketError) {
        self.environment = environment
        board = Board(instance: environment.instance)
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
        while !mustStop {
            let timeout = fanOut != nil ? 0 : acceptAgainAt != nil ? Self.acceptPause : -1
            let ready = cepoll_wait(epoll, &events, Int32(events.count), Int32(timeout))
            if let acceptAgainAt, boottime >= acceptAgainAt { resumeAccepting() }
            for event in events.prefix(Int(max(0, ready))) {
                switch event.tag {
                case Self.listenerTag: accept()
                case Self.inboxTag: takeDelivery()
                default: serve(event)
                }
            }
            continueFanOut(atMost: environment.limits.watchersPerTurn)
        }
    }

    private var boottime: Int64 { environment.now().boottime }

    // MARK: Deliveries

    private mutating func takeDelivery() {
        let delivery = environment.inbox.take()
        if delivery.beat > 0 { environment.inbox.beat(delivery.beat) }
        if delivery.stop { mustStop = true }
        for (tag, reply) in delivery.answers {
            guard let descriptor = table.descriptor(of: tag) else { continue }
            table[descriptor]?.answer = nil
            table[descriptor]?.connection.answered(reply)
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
            table[descriptor]?.connection.publish(bytes, version: version)
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
        let limits = environment.limits
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
            Connection(service: environment.service, limits: limits), descriptor: descriptor, uid: uid,
            interest: cepoll_in)
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

    private mutating func serve(_ event: cepoll_event) {
        guard let descriptor = table.descriptor(of: event.tag) else { return }
        // Both directions are shut: whatever it still asked for, nobody is left to tell.
        if event.events & (cepoll_hup | cepoll_err) != 0 {
            drop(descriptor)
            return
        }
        if event.events & cepoll_in != 0 { readInput(descriptor) }
        flush(descriptor)
    }

    private mutating func readInput(_ descriptor: Int32) {
        // A few at a time: whoever sends without end gets its turns like everybody else.
        for _ in 0..<4 {
            guard table[descriptor]?.connection.wantsInput == true else { return }
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count > 0 {
                environment.inbox.refresh(&board)
                let now = boottime
                fulfil(
                    table[descriptor]?.connection.received(buffer[..<count], board: &board, at: now), descriptor,
                    at: now)
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
        let now = boottime
        fulfil(table[descriptor]?.connection.proceed(board: &board, at: now), descriptor, at: now)
    }

    private mutating func fulfil(_ request: Connection.Request?, _ descriptor: Int32, at now: Int64) {
        switch request {
        case nil: break
        case .watch:
            environment.inbox.enterWatcher(&board)
            watchers.enter(descriptor)
            environment.activity.watcherCame()
            priceIsWanted(at: now)
            let state = board.reply(continues: true, at: now)
            table[descriptor]?.connection.watch(state, version: board.version)
        case .ask(let call):
            let tag = table.tag(of: descriptor)
            guard !call.changesTheDaemon || environment.administrators.include(peerOf: descriptor) else {
                environment.inbox.answer(tag, .permissionDenied)
                break
            }
            let counts = clientCounts
            let uid = table[descriptor]?.uid ?? .max
            table[descriptor]?.answer = Task { [environment] in
                environment.inbox.answer(tag, await environment.answer(call, uid, counts))
            }
        }
        if board.counts.priceCalls != toldPriceCalls {
            toldPriceCalls = board.counts.priceCalls
            priceIsWanted(at: now)
        }
    }

    private func priceIsWanted(at now: Int64) {
        guard environment.activity.called(at: now) else { return }
        Task { [environment] in await environment.wake() }
    }

    private var clientCounts: ClientCounts {
        ClientCounts(
            connections: table.count, users: table.users, watchers: watchers.count, calls: board.counts.calls,
            limits: environment.limits, refused: refused.inAll, refusedOfUser: refused.ofUser,
            tooLong: board.counts.tooLong, heldBack: board.counts.heldBack)
    }

    /// Writes what can be written, and asks for the events that matter from here on.
    private mutating func flush(_ descriptor: Int32) {
        while let output = table[descriptor]?.connection.output {
            let count = output.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count >= 0 {
                table[descriptor]?.connection.wrote(count)
                // Room again: a client that pipelines may have calls waiting.
                if table[descriptor]?.connection.wantsOutput == false { takeCallsReadBefore(descriptor) }
            } else if errno == EAGAIN {
                break
            } else if errno != EINTR {
                drop(descriptor)
                return
            }
        }
        guard let slot = table[descriptor] else { return }
        if slot.connection.isFinished {
            drop(descriptor)
            return
        }
        let wanted = (slot.connection.wantsInput ? cepoll_in : 0) | (slot.connection.wantsOutput ? cepoll_out : 0)
        guard wanted != slot.interest else { return }
        table[descriptor]?.interest = wanted
        _ = cepoll_modify(epoll, descriptor, wanted, table.tag(of: descriptor))
    }
}
