import BTCPriceCore
import ServiceLifecycle

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

/// The observer, until the shutdown.
struct ObserverService: Service {
    let observer: Observer<ContinuousClock>

    func run() async throws {
        await cancelWhenGracefulShutdown { await observer.run() }
    }
}
