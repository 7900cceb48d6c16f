import BTCPriceCore
import BTCPriceServer
import CMemory
import ServiceLifecycle
import TickLoop

/// A part of the daemon that runs until the shutdown and is then ended.
struct Part: Service {
    let end: @Sendable () async -> Void

    init(end: @escaping @Sendable () async -> Void) {
        self.end = end
    }

    func run() async throws {
        // Thrown where the group is cancelled instead: the part has to be ended all the same.
        do { try await gracefulShutdown() } catch {}
        await end()
    }
}

/// Ends the daemon with an error if its socket's file is gone: clients would find nobody, and the exchanges would be asked for nothing. A logout
/// that clears `XDG_RUNTIME_DIR` takes it away.
struct SocketGuardService: Service {
    private static let period: Duration = .seconds(2)

    let listener: ListeningSocket
    let clock: TickClock

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            while true {
                do { try await clock.sleep(for: Self.period) } catch { return }
                guard listener.isInPlace else {
                    throw StartFailure(
                        description:
                            "The socket's file was removed or replaced, so no client can reach this daemon: it ends.")
                }
            }
        }
    }
}

/// The observer, until the shutdown.
struct ObserverService: Service {
    let observer: Observer<TickClock>

    func run() async throws {
        await cancelWhenGracefulShutdown { await observer.run() }
    }
}

/// Gives back what is not needed any more: after the start most of the code that was mapped for it, and the same again once a crowd of
/// clients has left, with the memory it had.
struct MemoryService: Service {
    /// After the first ticks, and the first look at the other sources.
    private static let delay: Duration = .seconds(20)
    /// The least time from one to the next: it takes the loop a millisecond or two, in which no tick begins.
    private static let pause: Duration = .seconds(1)

    private let clock: TickClock
    private let departures: AsyncStream<Void>
    private let departure: AsyncStream<Void>.Continuation

    init(clock: TickClock) {
        self.clock = clock
        (departures, departure) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// A crowd has left.
    func crowdLeft() {
        departure.yield()
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard await slept(Self.delay) else { return }
            cmemory_drop_clean_pages()
            for await _ in departures {
                cmemory_drop_clean_pages()
                cmemory_return_free_pages()
                guard await slept(Self.pause) else { return }
            }
        }
        // Thrown where the group is cancelled instead: either way it is over.
        do { try await gracefulShutdown() } catch {}
    }

    /// Whether nobody cut it short.
    private func slept(_ duration: Duration) async -> Bool {
        do { try await clock.sleep(for: duration) } catch { return false }
        return true
    }
}
