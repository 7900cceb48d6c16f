import BTCPriceCore
import CLinux
import Glibc

/// Reading calls, handling them and writing replies.
extension SocketLoop {
    /// Takes an event of a connection, which then waits for its turn.
    mutating func take(_ event: clinux_event) {
        // Both directions are shut, so no reply can be delivered.
        if event.events & (clinux_hup | clinux_err) != 0 {
            if let descriptor = table.descriptor(of: event.tag) { drop(descriptor) }
            return
        }
        let user = table.with(tag: event.tag) { slot in
            if event.events & clinux_in != 0 { slot.isReadable = true }
            defer { slot.isWaiting = true }
            return slot.isWaiting ? -1 : slot.user
        }
        if let user, user >= 0 { turns.enter(event.tag, of: user) }
    }

    /// A connection's turn: writes what waits, reads once, and processes a few calls.
    mutating func serve(_ tag: UInt64, _ buffer: inout [UInt8]) {
        environment.inbox.refresh(&replies)
        let now = boottime
        let turn = table.with(tag: tag) { slot -> (descriptor: Int32, request: Connection.Request?) in
            slot.isWaiting = false
            guard slot.write(at: now) else { return (slot.descriptor, nil) }
            slot.read(into: &buffer, at: now)
            return (slot.descriptor, slot.connection.proceed(replies: &replies, at: now))
        }
        guard let turn else { return }
        if let request = turn.request { fulfil(request, turn.descriptor) }
        flush(turn.descriptor)
    }

    private mutating func fulfil(_ request: Connection.Request, _ descriptor: Int32) {
        switch request {
        case .watch(let currencies, let updates, let maxAge):
            replies.counts.replied.add(.watchPrice, isError: false)
            environment.inbox.count(1, watcherOf: updates)
            environment.inbox.refresh(&replies)
            watchers.enter(descriptor, of: updates)
            environment.activity.watcherCame(changesOf: updates == .changes ? currencies : [])
            priceIsWanted()
            if updates == .changes { Task { [environment] in await environment.changesAreWatched() } }
            let states = currencies.map { currency in
                let isTooOld = replies.tooOld(currency, maxAge, at: boottime) != nil
                return (isTooOld ? nil : replies.reply(currency, continues: true, at: boottime), currency)
            }
            table[descriptor]?.connection.watch(states, maxAge: maxAge, version: replies.version, at: boottime)
        case .ask(let call): ask(call, descriptor)
        }
    }

    /// Has a call handled outside the loop, or refuses it.
    private mutating func ask(_ call: PriceCall, _ descriptor: Int32) {
        let tag = table.tag(of: descriptor)
        let uid = table[descriptor]?.uid ?? .max
        guard !call.changesTheDaemon || environment.administrators.include(peerOf: descriptor) else {
            environment.inbox.answer(tag, of: nil, CallAnswer(.permissionDenied))
            return
        }
        // The limits do not apply to an administrator's calls: the daemon can be paused however busy other clients keep it.
        let limits = replies.limits
        let isOver = pending >= limits.pendingCalls || pendingOfUser[uid, default: 0] >= limits.pendingCallsPerUser
        guard call.changesTheDaemon || !isOver else {
            hit(.pendingCalls, of: uid)
            let limit = pending >= limits.pendingCalls ? limits.pendingCalls : limits.pendingCallsPerUser
            environment.inbox.answer(tag, of: nil, CallAnswer(.busy(limit: limit)))
            return
        }
        guard let wait = call.changesTheDaemon ? 0 : charge(call.cost, to: uid) else {
            environment.inbox.answer(tag, of: nil, CallAnswer(.busy(limit: Int(ServerLimits.costPerSecond))))
            return
        }
        pending += 1
        pendingOfUser[uid, default: 0] += 1
        let counts = clientCounts
        table[descriptor]?.answer = Task { [environment] in
            if wait > 0 {
                try? await Task.sleep(for: .milliseconds(wait))
                // If the connection has ended meanwhile, nobody reads the reply.
                guard !Task.isCancelled else {
                    return environment.inbox.answer(tag, of: uid, CallAnswer(.busy(limit: limits.pendingCalls)))
                }
            }
            environment.inbox.answer(tag, of: uid, await environment.answer(call, uid, counts))
        }
    }

    /// Counts the work of a call.
    /// - Returns: How long the call waits because its user's calls have caused too much work, milliseconds; `nil`, and not counted, if that is
    ///   too long.
    private mutating func charge(_ cost: Int64, to uid: UInt32) -> Int64? {
        var work =
            workOfUser[uid] ?? TokenBucket(burst: ServerLimits.costAtOnce, perSecond: ServerLimits.costPerSecond)
        let wait = work.wait(for: cost, at: boottime)
        if wait > 0 { hit(.costPerSecond, of: uid) }
        let isTooLong = wait > ServerLimits.longestWait
        if !isTooLong { work.take(cost) }
        workOfUser[uid] = work
        return isTooLong ? nil : wait
    }

    mutating func tellOfPriceCalls() {
        guard replies.counts.priceCalls != toldPriceCalls else { return }
        toldPriceCalls = replies.counts.priceCalls
        priceIsWanted()
    }

    private func priceIsWanted() {
        guard environment.activity.called(at: boottime) else { return }
        let wake = environment.wake
        Task { await wake() }
    }

    private var clientCounts: ClientCounts {
        var counts = replies.counts
        (counts.connections, counts.users, counts.watchers) = (table.count, table.users, watchers.count)
        return counts
    }

    /// Writes as much as possible, and registers for the events needed next or for another turn.
    mutating func flush(_ descriptor: Int32) {
        let now = boottime
        let next = table.with(descriptor) { slot -> Next in
            guard slot.write(at: now), !slot.connection.isFinished else { return .drop }
            if slot.isWaiting { return .nothing }
            if slot.connection.hasCallsWaiting {
                slot.isWaiting = true
                return .turn(slot.tag, user: slot.user)
            }
            let events = slot.connection.interest
            defer { slot.interest = events }
            return events == slot.interest ? .nothing : .register(events, slot.tag)
        }
        table.count(heldBy: descriptor)
        for limit in replies.takeHits() { tell(limit, of: table[descriptor]?.uid ?? .max) }
        switch next {
        case .drop: drop(descriptor)
        case .turn(let tag, let user): turns.enter(tag, of: user)
        case .register(let events, let tag): _ = clinux_modify(epoll, descriptor, events, tag)
        case .nothing, nil: break
        }
    }

    /// What to do about a connection after writing.
    private enum Next {
        /// It is finished, or writing failed.
        case drop
        /// Calls wait for another turn.
        case turn(UInt64, user: Int)
        /// Register for these events.
        case register(UInt32, UInt64)
        case nothing
    }

    // MARK: Limits

    /// Counts a hit of a limit by a user's client, and reports it.
    mutating func hit(_ limit: ClientLimit, of uid: UInt32) {
        replies.counts.hit(limit)
        tell(limit, of: uid)
    }

    private func tell(_ limit: ClientLimit, of uid: UInt32) {
        environment.report(.limitHit(limit, most: replies.limits.most(of: limit), uid: uid))
    }

    /// While the connections take too much memory, closes those that have been unread longest of the user who holds most. An eighth of a
    /// user's share is made free at a time: to look for them takes longer than to close them.
    mutating func relieve() {
        mostTaken = max(mostTaken, taken)
        // Nobody is above the limit of one user otherwise, nor all above that of all.
        guard table.total.heldBytes > replies.limits.queuedBytesPerUser else { return }
        let limits = replies.limits
        while let (uid, share) = table.greatestHolder,
            share.heldBytes > limits.queuedBytesPerUser || table.total.heldBytes > limits.queuedBytes
        {
            let goal = share.heldBytes - max(1, limits.queuedBytesPerUser / 8)
            for descriptor in table.holders(of: uid) where table.share(of: uid).heldBytes > goal {
                hit(.queuedBytes, of: uid)
                drop(descriptor)
            }
        }
    }
}

extension ConnectionTable.Slot {
    /// Reads once, if there may be input and it is wanted.
    fileprivate mutating func read(into buffer: inout [UInt8], at boottime: BootTime) {
        guard isReadable, connection.wantsInput else { return }
        isReadable = false
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        if count > 0 {
            connection.received(buffer[..<count], at: boottime)
        } else if count == 0 {
            connection.inputEnded()
        }
        // Otherwise there was no data, or a signal interrupted the call. The event is reported again.
    }

    /// Writes as much as possible.
    /// - Returns: Whether the connection is still usable.
    fileprivate mutating func write(at boottime: BootTime) -> Bool {
        // While the kernel reports that the client has read everything, it still counts 1 (sock_wfree() in net/core/sock.c).
        while connection.wantsOutput, connection.mayWrite({ clinux_unread(descriptor) <= 1 }) {
            let count = connection.withOutput { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count >= 0 {
                connection.wrote(count, at: boottime)
            } else if errno == EAGAIN {
                return true
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
