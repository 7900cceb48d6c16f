import CEpoll
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Who sleeps until when, and one timer for all of them (timerfd_create(2), `CLOCK_BOOTTIME`), which the loop looks at with everything
/// else it waits for.
final class Alarm: Sendable {
    private typealias Continuation = CheckedContinuation<Void, any Error>

    private struct State {
        var sleepers = Sleepers<Continuation>()
        var lastID: UInt64 = 0
        /// What the timer is set to.
        var armed: ContinuousClock.Instant?
        /// Whether the timer is left as it is for now.
        var isHeld = false
    }

    private let timer: CInt
    private let state = Mutex(State())

    init() throws(TickLoopError) {
        timer = cepoll_boottime_timer()
        guard timer >= 0 else {
            throw TickLoopError(description: "cannot make a timer: \(String(cString: strerror(errno)))")
        }
    }

    /// Has the loop look at the timer. To be called once.
    func start(on eventLoop: any EventLoop) {
        let timer = timer
        let bootstrap = NIOPipeBootstrap(group: eventLoop)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 8))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AlarmHandler { [weak self] in self?.ring() })
                }
            }
        bootstrap.takingOwnershipOfDescriptor(input: timer).whenFailure { error in
            preconditionFailure("a timer is no regular file: \(error)")
        }
    }

    func sleep(until deadline: ContinuousClock.Instant, latest: ContinuousClock.Instant) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    // Cancelled before it lay down: whoever cancelled has found nobody to wake.
                    if Task.isCancelled { return true }
                    state.sleepers.lieDown(id, until: deadline, latest: latest, continuation)
                    arm(&state)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            wake(id)
        }
    }

    private func wake(_ id: UInt64) {
        let sleeper = state.withLock { state in
            let sleeper = state.sleepers.remove(id)
            if sleeper != nil { arm(&state) }
            return sleeper
        }
        sleeper?.resume(throwing: CancellationError())
    }

    /// Leaves the timer as it is until it is released: what changes meanwhile may change back.
    func hold() {
        state.withLock { $0.isHeld = true }
    }

    /// Sets the timer to what has become of it.
    func release() {
        state.withLock { state in
            state.isHeld = false
            arm(&state)
        }
    }

    /// The timer has expired.
    private func ring() {
        let now = ContinuousClock.now
        let woken = state.withLock { state in
            state.armed = nil
            let woken = state.sleepers.due(now)
            arm(&state)
            return woken
        }
        for sleeper in woken { sleeper.resume() }
    }

    /// Sets the timer to the first who must be woken; no wake-up is left of one who was cancelled.
    private func arm(_ state: inout State) {
        guard !state.isHeld else { return }
        let next = state.sleepers.next
        guard next != state.armed else { return }
        state.armed = next
        // A moment of zero would stop the timer.
        let moment = next.map { max(1, ContinuousClock().systemEpoch.duration(to: $0).wholeNanoseconds) } ?? 0
        cepoll_arm(timer, moment / 1_000_000_000, moment % 1_000_000_000)
    }
}

extension Duration {
    /// Rounded towards zero; at most 292 years. `components` takes ten times as long.
    fileprivate var wholeNanoseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }
}

/// Reads the timer's count, which nobody needs.
private final class AlarmHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let ring: () -> Void

    init(_ ring: @escaping () -> Void) {
        self.ring = ring
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        ring()
    }
}
