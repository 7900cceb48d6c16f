import BTCPriceCore
import BTCPriceServer
import ServiceLifecycle
import BTCPriceNetworking

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
