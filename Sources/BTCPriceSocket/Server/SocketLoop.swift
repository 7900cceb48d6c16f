import BTCPriceCore
import CLinux
import Glibc

/// The epoll loop: owns every connection and runs on its own thread; only the inbox is shared. Accepting and serving are in other files.
struct SocketLoop: ~Copyable {
    /// The loop's dependencies.
    struct Environment: Sendable {
        let listener: ListeningSocket
        let inbox: Inbox
        let instance: String
        let limits: ServerLimits
        let now: TimeSource
        let activity: ClientActivity
        let administrators: Administrators
        let answer: PriceServer.Answer
        let wake: @Sendable () async -> Void
        let changesAreWatched: @Sendable () async -> Void
        let report: @Sendable (ServerEvent) -> Void
    }

    static let listenerTag = UInt64.max
    private static let inboxTag = UInt64.max - 1
    /// How long accepting pauses when file descriptors run out, milliseconds. It resumes earlier if a connection ends.
    static let acceptPause: Int64 = 1000

    let environment: Environment
    let epoll: Int32
    var replies: ReplyCache
    var table = ConnectionTable()
    var watchers = Watchers()
    var turns = Turns()
    /// The state being sent to the watchers.
    var fanOut: (bytes: [UInt8], state: PriceState, version: UInt64)?
    var acceptAgainAt: BootTime?
    var mustStop = false
    /// The price calls already reported to ``ClientActivity``.
    var toldPriceCalls: Int64 = 0
    /// When the events being processed arrived.
    var boottime: BootTime
    /// When connections are next checked for timeouts.
    var sweepAt: BootTime?
    /// The calls being handled outside the loop, in total and by user.
    var pending = 0
    /// The most memory that the connections took since it was given back to the system, bytes.
    var mostTaken = 0
    /// About what the connections take, bytes: what they hold, and 8 KiB each for themselves and the calls that are handled for them.
    var taken: Int { table.total.heldBytes + table.count << 13 }
    var pendingOfUser: [UInt32: Int] = [:]
    /// The work that calls of a user may still cause, of the users whose calls have caused some lately.
    var workOfUser: [UInt32: TokenBucket] = [:]

    init(_ environment: Environment) throws(SocketError) {
        self.environment = environment
        replies = ReplyCache(instance: environment.instance, limits: environment.limits)
        boottime = environment.now().boottime
        epoll = clinux_create()
        guard epoll >= 0 else { throw SocketError(description: "cannot make an epoll instance: \(systemError(errno))") }
        guard clinux_add(epoll, environment.listener.descriptor, clinux_in, Self.listenerTag) == 0,
            clinux_add(epoll, environment.inbox.signal.descriptor, clinux_in, Self.inboxTag) == 0
        else {
            // The deinitializer closes the descriptors opened so far.
            throw SocketError(description: "cannot watch the socket: \(systemError(errno))")
        }
    }

    deinit {
        for descriptor in table.descriptors { close(descriptor) }
        close(epoll)
    }

    mutating func run() {
        var events = [clinux_event](repeating: clinux_event(), count: 512)
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while !mustStop {
            let ready = Int(max(0, clinux_wait(epoll, &events, Int32(events.count), turns.isEmpty ? timeout : 0)))
            // Read once for all events: they are handled within the same millisecond.
            boottime = environment.now().boottime
            if let acceptAgainAt, boottime >= acceptAgainAt { resumeAccepting() }
            // There may be more events: publications and replies must not wait behind any number of clients.
            if ready == events.count { takeDelivery() }
            for index in 0..<ready {
                switch events[index].tag {
                case Self.listenerTag: accept()
                case Self.inboxTag: takeDelivery()
                default: take(events[index])
                }
            }
            for _ in 0..<ServerLimits.connectionsPerTurn {
                guard let tag = turns.next() else { break }
                serve(tag, &buffer)
            }
            tellOfPriceCalls()
            continueFanOut(atMost: replies.limits.watchersPerTurn)
            relieve()
            sweep()
        }
        // A state that some watchers have received must reach all of them.
        continueFanOut(atMost: .max)
    }

    /// The timeout of epoll_wait(2), milliseconds; -1 for none.
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
            replies.counts.limits = limits
            sweepAt = nil
        }
        for (tag, uid, answer) in delivery.answers {
            if let uid {
                pending -= 1
                pendingOfUser[uid] = pendingOfUser[uid].flatMap { $0 > 1 ? $0 - 1 : nil }
            }
            guard let descriptor = table.descriptor(of: tag) else { continue }
            table[descriptor]?.answer = nil
            table[descriptor]?.connection.answered(answer, replies: &replies, at: boottime)
            flush(descriptor)
        }
        environment.inbox.refresh(&replies)
        if delivery.currenciesChanged { endWatchesOfOthers() }
        for (state, version, isForAll) in delivery.fanOut {
            // Finish the previous fan-out first: no watcher may miss a tick because of the slices.
            continueFanOut(atMost: .max)
            let bytes = ReplyCache.reply(state, instance: replies.instance, continues: true, at: boottime)
            fanOut = (bytes, state, version)
            watchers.beginFanOut(isForAll: isForAll)
        }
    }

    /// Ends the watches of currencies that are no longer kept.
    private mutating func endWatchesOfOthers() {
        for descriptor in table.descriptors {
            let known = replies.currencies
            guard let connection = table[descriptor]?.connection, connection.isWatching,
                let gone = connection.watched.first(where: { !known.contains($0) })
            else { continue }
            table[descriptor]?.connection.endWatch(.unknownCurrency(gone, known: known), at: boottime)
            flush(descriptor)
        }
    }

    mutating func continueFanOut(atMost limit: Int) {
        guard let (bytes, state, version) = fanOut else { return }
        var left = limit
        while left > 0 {
            guard let descriptor = watchers.nextToServe() else {
                fanOut = nil
                return
            }
            table[descriptor]?.connection.publish(bytes, state, version: version, at: boottime)
            flush(descriptor)
            left -= 1
        }
    }
}
