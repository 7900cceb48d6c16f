import BTCPriceCore
import BTCPriceAPI
import CLinux
import Glibc
import Varlink

/// The epoll loop: it owns every connection and runs on a thread of its own. Nothing in it is shared, the inbox apart. Here is what it
/// goes through; how clients come and go, and how they are served, are files of their own.
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

    static let listenerTag = UInt64.max
    private static let inboxTag = UInt64.max - 1
    /// How long accepting pauses once the descriptors are used up, unless a connection ends before, milliseconds.
    static let acceptPause: Int64 = 1000

    let environment: Environment
    let epoll: Int32
    var replies: ReplyCache
    var table = ConnectionTable()
    var watchers = Watchers()
    /// The state that is on its way to the watchers.
    var fanOut: (bytes: [UInt8], version: UInt64)?
    /// Until when accepting pauses, `CLOCK_BOOTTIME` in milliseconds.
    var acceptAgainAt: Int64?
    var mustStop = false
    var refused: (inAll: Int64, ofUser: Int64) = (0, 0)
    /// The price calls that are known to ``ClientActivity``.
    var toldPriceCalls: Int64 = 0
    /// `CLOCK_BOOTTIME` in milliseconds when the events came that are being looked at.
    var boottime: Int64
    /// When the connections are looked at for one that has taken too long.
    var sweepAt: Int64?
    /// The calls that are being answered elsewhere, in all and by user.
    var pending = 0
    var pendingOfUser: [UInt32: Int] = [:]
    var overdue: (idle: Int64, message: Int64, write: Int64) = (0, 0, 0)
    var refusedCalls: Int64 = 0

    init(_ environment: Environment) throws(SocketError) {
        self.environment = environment
        replies = ReplyCache(instance: environment.instance, service: environment.service, limits: environment.limits)
        boottime = environment.now().boottime
        epoll = clinux_create()
        guard epoll >= 0 else { throw SocketError("cannot make an epoll instance: \(systemError(errno))") }
        guard clinux_add(epoll, environment.listener.descriptor, clinux_in, Self.listenerTag) == 0,
            clinux_add(epoll, environment.inbox.wakeDescriptor, clinux_in, Self.inboxTag) == 0
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
        var events = [clinux_event](repeating: clinux_event(), count: 64)
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while !mustStop {
            let ready = Int(max(0, clinux_wait(epoll, &events, Int32(events.count), timeout)))
            // Once for all of them: they are answered within the same millisecond.
            boottime = environment.now().boottime
            if let acceptAgainAt, boottime >= acceptAgainAt { resumeAccepting() }
            // There may be more: what comes from us is not to wait behind any number of clients.
            if ready == events.count { takeDelivery() }
            for index in 0..<ready {
                switch events[index].tag {
                case Self.listenerTag: accept()
                case Self.inboxTag: takeDelivery()
                default: serve(events[index], &buffer)
                }
            }
            tellOfPriceCalls()
            continueFanOut(atMost: replies.limits.watchersPerTurn)
            sweep()
        }
        // What some watchers have seen all are to see.
        continueFanOut(atMost: .max)
    }

    /// How long there is nothing to do but for events, milliseconds; -1 for ever.
    var timeout: Int32 {
        if fanOut != nil { return 0 }
        let next = min(acceptAgainAt ?? .max, sweepAt ?? .max)
        return next == .max ? -1 : Int32(clamping: max(0, next - boottime))
    }

    // MARK: Deliveries

    mutating func takeDelivery() {
        let delivery = environment.inbox.take()
        if delivery.beat > 0 { environment.inbox.beat(delivery.beat) }
        if delivery.stop { mustStop = true }
        if let limits = delivery.limits {
            replies.limits = limits
            sweepAt = nil
        }
        for (tag, uid, reply) in delivery.answers {
            if let uid {
                pending -= 1
                pendingOfUser[uid] = pendingOfUser[uid].flatMap { $0 > 1 ? $0 - 1 : nil }
            }
            guard let descriptor = table.descriptor(of: tag) else { continue }
            table[descriptor]?.answer = nil
            table[descriptor]?.connection.answered(reply, at: boottime)
            takeCallsReadBefore(descriptor)
            flush(descriptor)
        }
        for (state, version) in delivery.fanOut {
            // A tick that comes before everybody has the last one: nobody may miss a tick over our slicing.
            continueFanOut(atMost: .max)
            let bytes = ReplyCache.reply(state.told(at: boottime), instance: environment.instance, continues: true)
            fanOut = (bytes, version)
            watchers.beginFanOut()
        }
    }

    mutating func continueFanOut(atMost limit: Int) {
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
}
