import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import Logging
import ServiceLifecycle

extension ServiceGroupConfiguration {
    /// Services that end one after the other, the last one first, also if one of them fails.
    init(inOrder services: [any Service], logger: Logger) {
        self.init(
            services: services.map {
                ServiceConfiguration(service: $0, failureTerminationBehavior: .gracefullyShutdownGroup)
            },
            logger: logger)
    }
}

/// Ends a part of the daemon at the shutdown.
struct CleanUp: Service {
    let end: @Sendable () async -> Void

    func run() async throws {
        // It throws if the group is cancelled; the part must end in that case too.
        do { try await gracefulShutdown() } catch {}
        await end()
    }
}

/// Ends the daemon with an error if its socket's file is gone: no client can connect. A logout that clears `XDG_RUNTIME_DIR` does that.
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

/// Does work until the shutdown, which cancels it.
struct BackgroundService: Service {
    /// How long the shutdown waits for it: work that waits for a disk can't be cancelled, and the price must still be saved.
    var longestEnd = Duration.seconds(1)
    let work: @Sendable () async -> Void

    func run() async throws {
        let task = Task { await work() }
        do { try await gracefulShutdown() } catch {}
        task.cancel()
        let (isOver, end) = AsyncStream<Void>.makeStream()
        Task {
            await task.value
            end.finish()
        }
        Task {
            try? await Task.sleep(for: longestEnd)
            end.finish()
        }
        for await _ in isOver {}
    }
}
