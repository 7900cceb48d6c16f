import BTCPriceCore
import CLinux
import Glibc

/// Reading calls, handling them and writing replies.
extension SocketLoop {
    mutating func serve(_ event: clinux_event, _ buffer: inout [UInt8]) {
        guard let descriptor = table.descriptor(of: event.tag) else { return }
        // Both directions are shut, so no reply can be delivered.
        if event.events & (clinux_hup | clinux_err) != 0 {
            carryOutLastOrders(descriptor, &buffer)
            drop(descriptor)
            return
        }
        if event.events & clinux_in != 0 { readInput(descriptor, &buffer) }
        flush(descriptor)
    }

    private mutating func readInput(_ descriptor: Int32, _ buffer: inout [UInt8]) {
        guard table.with(descriptor, { $0.connection.wantsInput }) == true else { return }
        // Only once, so that a client that sends continuously takes turns with the others.
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        if count > 0 {
            environment.inbox.refresh(&replies)
            let now = boottime
            let request = table.with(descriptor) {
                $0.connection.received(buffer[..<count], replies: &replies, at: now)
            }
            if let request, let request { fulfil(request, descriptor) }
        } else if count == 0 {
            table[descriptor]?.connection.inputEnded()
        }
        // Otherwise there was no data, or a signal interrupted the call. The next turn reads again.
    }

    /// Carries out the last calls of a client that closed the connection without waiting for a reply.
    private mutating func carryOutLastOrders(_ descriptor: Int32, _ buffer: inout [UInt8]) {
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        let orders = table.with(descriptor) {
            $0.connection.lastOrders(buffer[..<max(0, count)])
        }
        guard let orders, !orders.isEmpty, environment.administrators.include(peerOf: descriptor) else { return }
        let (counts, uid) = (clientCounts, table[descriptor]?.uid ?? .max)
        // The orders follow the pending call, which must therefore not be cancelled when the connection ends.
        let before = table[descriptor]?.answer
        table[descriptor]?.answer = nil
        Task { [environment] in
            await before?.value
            for order in orders { _ = await environment.answer(order, uid, counts) }
        }
    }

    mutating func takeCallsReadBefore(_ descriptor: Int32) {
        environment.inbox.refresh(&replies)
        if let request = table[descriptor]?.connection.proceed(replies: &replies, at: boottime) {
            fulfil(request, descriptor)
        }
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
            replies.counts.refusedCalls += 1
            let limit = pending >= limits.pendingCalls ? limits.pendingCalls : limits.pendingCallsPerUser
            environment.inbox.answer(tag, of: nil, CallAnswer(.busy(limit: limit)))
            return
        }
        pending += 1
        pendingOfUser[uid, default: 0] += 1
        let counts = clientCounts
        table[descriptor]?.answer = Task { [environment] in
            environment.inbox.answer(tag, of: uid, await environment.answer(call, uid, counts))
        }
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

    /// The result of writing.
    private enum Written {
        case asMuchAsPossible
        /// All output is written, and received calls can be processed.
        case callsWait
        case failed
    }

    /// Writes as much as possible and registers for the events needed next.
    mutating func flush(_ descriptor: Int32) {
        var written = write(descriptor)
        while case .callsWait = written {
            takeCallsReadBefore(descriptor)
            // If there is no reply yet, the remaining input can't be processed now.
            guard table[descriptor]?.connection.wantsOutput == true else { break }
            written = write(descriptor)
        }
        if case .failed = written { return drop(descriptor) }
        let outcome = table.with(descriptor) { slot -> (isFinished: Bool, change: UInt32?) in
            let events = slot.connection.interest
            defer { slot.interest = events }
            return (slot.connection.isFinished, events == slot.interest ? nil : events)
        }
        guard let outcome else { return }
        if outcome.isFinished { return drop(descriptor) }
        if let events = outcome.change { _ = clinux_modify(epoll, descriptor, events, table.tag(of: descriptor)) }
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
