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
        let fetch: @Sendable (CachePolicy) async -> Result<PriceState, FetchFailure>
        let report: @Sendable (ServerEvent) -> Void
    }

    private struct Slot {
        var connection: Connection
        let generation: UInt32
        let uid: UInt32
        var interest: UInt32
        /// Its place among the watchers.
        var watcherIndex: Int?
    }

    /// A state on its way to the watchers, of which the first `next` have it.
    private struct FanOut {
        let bytes: [UInt8]
        let version: UInt64
        var next = 0
    }

    private static let listenerTag = UInt64.max
    private static let inboxTag = UInt64.max - 1
    /// How long accepting pauses once the descriptors are used up, unless a connection ends before, milliseconds.
    private static let acceptPause: Int32 = 1000

    private let environment: Environment
    private let epoll: Int32
    private var board: Board
    /// By descriptor.
    private var slots: [Slot?] = []
    private var count = 0
    private var countByUser: [UInt32: Int] = [:]
    private var generation: UInt32 = 0
    private var watchers: [Int32] = []
    private var fanOut: FanOut?
    private var acceptIsPaused = false
    private var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    private var mustStop = false

    init(_ environment: Environment) throws(SocketError) {
        self.environment = environment
        board = Board(instance: environment.instance)
        epoll = cepoll_create()
        guard epoll >= 0 else { throw SocketError("cannot make an epoll instance: \(systemError(errno))") }
        guard cepoll_add(epoll, environment.listener.descriptor, cepoll_in, Self.listenerTag) == 0,
            cepoll_add(epoll, environment.inbox.wakeDescriptor, cepoll_in, Self.inboxTag) == 0
        else {
            let reason = systemError(errno)
            close(epoll)
            throw SocketError("cannot watch the socket: \(reason)")
        }
    }

    deinit {
        for descriptor in slots.indices where slots[descriptor] != nil { close(Int32(descriptor)) }
        close(epoll)
    }

    mutating func run() {
        var events = [cepoll_event](repeating: cepoll_event(), count: 64)
        while !mustStop {
            let timeout: Int32 = fanOut != nil ? 0 : acceptIsPaused ? Self.acceptPause : -1
            let ready = cepoll_wait(epoll, &events, Int32(events.count), timeout)
            if ready <= 0, acceptIsPaused { resumeAccepting() }
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

    // MARK: Deliveries

    private mutating func takeDelivery() {
        let delivery = environment.inbox.take()
        if delivery.beat > 0 { environment.inbox.beat(delivery.beat) }
        if delivery.stop { mustStop = true }
        for (tag, reply) in delivery.answers {
            guard let descriptor = descriptor(of: tag) else { continue }
            slots[descriptor]?.connection.fetched(reply)
            proceed(descriptor)
        }
        for (state, version) in delivery.fanOut {
            // A tick that comes before everybody has the last one: nobody may miss a tick over our slicing.
            continueFanOut(atMost: .max)
            let bytes = Board.reply(state.told(at: boottime), instance: environment.instance, continues: true)
            fanOut = FanOut(bytes: bytes, version: version)
        }
    }

    private mutating func continueFanOut(atMost limit: Int) {
        var served = 0
        while let current = fanOut {
            guard current.next < watchers.count else {
                fanOut = nil
                return
            }
            guard served < limit else { return }
            let descriptor = Int(watchers[current.next])
            fanOut?.next += 1
            served += 1
            slots[descriptor]?.connection.publish(current.bytes, version: current.version)
            flush(descriptor)
        }
    }

    private mutating func enterWatcher(_ descriptor: Int) {
        slots[descriptor]?.watcherIndex = watchers.count
        watchers.append(Int32(descriptor))
    }

    /// Takes a watcher out in one step. Where a fan-out is under way, those it has served stay in front of those it has not.
    private mutating func leaveWatcher(_ index: Int) {
        var hole = index
        if let current = fanOut, index < current.next {
            fanOut?.next -= 1
            move(from: current.next - 1, to: hole)
            hole = current.next - 1
        }
        move(from: watchers.count - 1, to: hole)
        watchers.removeLast()
        environment.inbox.leaveWatcher()
    }

    private mutating func move(from: Int, to: Int) {
        watchers[to] = watchers[from]
        slots[Int(watchers[to])]?.watcherIndex = to
    }

    // MARK: Connections

    private mutating func accept() {
        for _ in 0..<64 {
            let descriptor = cepoll_accept(environment.listener.descriptor)
            if descriptor < 0 {
                switch errno {
                case EAGAIN, EINTR, ECONNABORTED: return
                default:
                    // EMFILE and its like: level-triggered, it would be reported without end.
                    environment.report(.acceptFailed(reason: systemError(errno)))
                    acceptIsPaused = true
                    _ = cepoll_remove(epoll, environment.listener.descriptor)
                    return
                }
            }
            admit(descriptor)
        }
    }

    private mutating func resumeAccepting() {
        acceptIsPaused = false
        _ = cepoll_add(epoll, environment.listener.descriptor, cepoll_in, Self.listenerTag)
    }

    private mutating func admit(_ descriptor: Int32) {
        let peer = cepoll_peer_uid(descriptor)
        let uid = UInt32(truncatingIfNeeded: peer)
        let limits = environment.limits
        if count >= limits.connections {
            environment.report(.tooManyConnections(limit: limits.connections))
        } else if countByUser[uid, default: 0] >= limits.connectionsPerUser {
            environment.report(.tooManyConnectionsOfUser(uid: uid, limit: limits.connectionsPerUser))
        } else {
            var size = limits.sendBufferBytes
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout.size(ofValue: size)))
            generation &+= 1
            if slots.count <= Int(descriptor) {
                slots.append(contentsOf: repeatElement(nil, count: Int(descriptor) + 1 - slots.count))
            }
            if cepoll_add(epoll, descriptor, cepoll_in, tag(Int(descriptor), generation)) == 0 {
                slots[Int(descriptor)] = Slot(
                    connection: Connection(service: environment.service, limits: limits), generation: generation,
                    uid: uid, interest: cepoll_in)
                count += 1
                countByUser[uid, default: 0] += 1
                return
            }
        }
        close(descriptor)
    }

    private mutating func drop(_ descriptor: Int) {
        guard let slot = slots[descriptor] else { return }
        if let index = slot.watcherIndex { leaveWatcher(index) }
        slots[descriptor] = nil
        count -= 1
        countByUser[slot.uid] = countByUser[slot.uid].flatMap { $0 > 1 ? $0 - 1 : nil }
        close(Int32(descriptor))
        if acceptIsPaused { resumeAccepting() }
    }

    private mutating func serve(_ event: cepoll_event) {
        guard let descriptor = descriptor(of: event.tag) else { return }
        if event.events & (cepoll_in | cepoll_hup | cepoll_err) != 0 { readInput(descriptor) }
        if event.events & (cepoll_hup | cepoll_err) != 0 {
            drop(descriptor)
        } else {
            flush(descriptor)
        }
    }

    private mutating func readInput(_ descriptor: Int) {
        // A few at a time: whoever sends without end gets its turns like everybody else.
        for _ in 0..<4 {
            guard slots[descriptor]?.connection.wantsInput == true else { return }
            let count = buffer.withUnsafeMutableBytes { recv(Int32(descriptor), $0.baseAddress, $0.count, 0) }
            if count > 0 {
                environment.inbox.refresh(&board)
                let now = boottime
                fulfil(slots[descriptor]?.connection.received(buffer[..<count], board: &board, at: now), descriptor)
                // A short read has emptied the socket.
                if count < buffer.count { return }
            } else if count == 0 {
                slots[descriptor]?.connection.inputEnded()
            } else if errno != EINTR {
                return
            }
        }
    }

    /// Looks at calls that were read before, and sends what there is to send.
    private mutating func proceed(_ descriptor: Int) {
        takeCallsReadBefore(descriptor)
        flush(descriptor)
    }

    private mutating func takeCallsReadBefore(_ descriptor: Int) {
        environment.inbox.refresh(&board)
        let now = boottime
        fulfil(slots[descriptor]?.connection.proceed(board: &board, at: now), descriptor)
    }

    private mutating func fulfil(_ request: Connection.Request?, _ descriptor: Int) {
        guard let request, let slot = slots[descriptor] else { return }
        switch request {
        case .watch:
            environment.inbox.enterWatcher(&board)
            enterWatcher(descriptor)
            let state = board.reply(continues: true, at: boottime)
            slots[descriptor]?.connection.watch(state, version: board.version)
        case .fetch(let policy):
            let tag = tag(descriptor, slot.generation)
            Task { [environment] in
                let reply: Reply =
                    switch await environment.fetch(policy) {
                    case .success(let state): .state(StateMessage(instance: environment.instance, state: state))
                    case .failure(let failure): .fetchFailed(failure)
                    }
                environment.inbox.answer(tag, reply)
            }
        }
    }

    /// Writes what can be written, and asks for the events that matter from here on.
    private mutating func flush(_ descriptor: Int) {
        while true {
            guard let output = slots[descriptor]?.connection.output else {
                guard let slot = slots[descriptor], !slot.connection.isFinished else { return drop(descriptor) }
                // Room again: a client that pipelines may have calls waiting.
                break
            }
            let count = output.withUnsafeBytes {
                send(Int32(descriptor), $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                slots[descriptor]?.connection.wrote(count)
                if slots[descriptor]?.connection.wantsOutput == false { takeCallsReadBefore(descriptor) }
            } else if errno == EAGAIN {
                break
            } else if errno != EINTR {
                return drop(descriptor)
            }
        }
        updateInterest(descriptor)
    }

    private mutating func updateInterest(_ descriptor: Int) {
        guard let slot = slots[descriptor] else { return }
        let wanted = (slot.connection.wantsInput ? cepoll_in : 0) | (slot.connection.wantsOutput ? cepoll_out : 0)
        guard wanted != slot.interest else { return }
        slots[descriptor]?.interest = wanted
        _ = cepoll_modify(epoll, Int32(descriptor), wanted, tag(descriptor, slot.generation))
    }

    // MARK: Tags

    private func tag(_ descriptor: Int, _ generation: UInt32) -> UInt64 {
        UInt64(generation) << 32 | UInt64(UInt32(descriptor))
    }

    /// The descriptor that a tag stands for, unless its connection has ended since.
    private func descriptor(of tag: UInt64) -> Int? {
        let descriptor = Int(UInt32(truncatingIfNeeded: tag))
        guard descriptor < slots.count, slots[descriptor]?.generation == UInt32(tag >> 32) else { return nil }
        return descriptor
    }

    private var boottime: Int64 { environment.now().boottime }
}
