import BTCPriceCore
import CLinux
import Glibc

/// Accepting and closing connections.
extension SocketLoop {
    mutating func accept() {
        // At most 64 at a time: a client that connects continuously must not block the others.
        for _ in 0..<64 {
            let descriptor = clinux_accept(environment.listener.descriptor)
            if descriptor >= 0 {
                admit(descriptor)
                continue
            }
            switch errno {
            case EAGAIN, EINTR, ECONNABORTED: return
            default:
                // EMFILE and the like: the level-triggered event would be reported endlessly.
                environment.report(.acceptFailed(reason: systemError(errno)))
                acceptAgainAt = boottime + Self.acceptPause
                _ = clinux_remove(epoll, environment.listener.descriptor)
                return
            }
        }
    }

    mutating func resumeAccepting() {
        let isBack = clinux_add(epoll, environment.listener.descriptor, clinux_in, Self.listenerTag) == 0
        acceptAgainAt = isBack ? nil : boottime + Self.acceptPause
    }

    private mutating func admit(_ descriptor: Int32) {
        let uid = UInt32(truncatingIfNeeded: clinux_peer_uid(descriptor))
        let limits = replies.limits
        if let limit = table.limit(limits, for: uid, isPrivileged: environment.administrators.owns(uid: uid)) {
            hit(limit, of: uid)
            // Before its first call, so that the client learns why. A reply this short fits into the empty buffer.
            let reply = Reply.tooManyConnections(limit, most: limits.most(of: limit)).encoded()
            _ = send(descriptor, reply, reply.count, Int32(MSG_NOSIGNAL))
            close(descriptor)
            return
        }
        var size = limits.sendBufferBytes
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout.size(ofValue: size)))
        let tag = table.add(
            Connection(limits: limits, at: boottime), descriptor: descriptor, uid: uid, interest: clinux_in)
        if clinux_add(epoll, descriptor, clinux_in, tag) != 0 { drop(descriptor) }
    }

    mutating func drop(_ descriptor: Int32) {
        if let updates = watchers.leave(descriptor) {
            environment.inbox.count(-1, watcherOf: updates)
            let watched = table[descriptor]?.connection.watched ?? []
            environment.activity.watcherLeft(changesOf: updates == .changes ? watched : [], at: boottime)
        }
        // No reply can be delivered: a fetch that no other client waits for ends here.
        table[descriptor]?.answer?.cancel()
        table.remove(descriptor)
        close(descriptor)
        if acceptAgainAt != nil { resumeAccepting() }
    }

    /// Closes the connections that exceeded a timeout.
    mutating func sweep() {
        guard table.count > 0 else {
            sweepAt = nil
            return giveBackMemory()
        }
        if let sweepAt, boottime < sweepAt { return }
        let isDue = sweepAt != nil
        sweepAt = boottime + replies.limits.sweepPeriod.wholeMilliseconds
        guard isDue else { return }
        giveBackMemory()
        workOfUser = workOfUser.filter { !$0.value.isFull(at: boottime) }
        for descriptor in table.descriptors {
            guard let slot = table[descriptor], let patience = slot.connection.overdue(replies.limits, at: boottime)
            else { continue }
            switch patience {
            case .idle: hit(.idleTimeout, of: slot.uid)
            case .message: hit(.messageTimeout, of: slot.uid)
            case .write: hit(.writeTimeout, of: slot.uid)
            }
            drop(descriptor)
        }
    }

    /// Gives the memory of clients that have gone back to the system. malloc(3) itself gives back only what is at the end of its heap.
    private mutating func giveBackMemory() {
        guard mostTaken - taken >= 4 << 20 else { return }
        mostTaken = taken
        malloc_trim(0)
    }
}
