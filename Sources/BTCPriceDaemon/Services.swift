import BTCPriceCore
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

/// The observer, until the shutdown.
struct ObserverService: Service {
    let observer: Observer<TickClock>

    func run() async throws {
        await cancelWhenGracefulShutdown { await observer.run() }
    }
}

/// Gives back, once, what only the start has needed: most of the code that is mapped then is never run again.
struct MemoryService: Service {
    /// After the first ticks, and the first look at the other sources.
    private static let delay: Duration = .seconds(20)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard (try? await Task.sleep(for: Self.delay)) != nil else { return }
            cmemory_drop_clean_pages()
        }
        try? await gracefulShutdown()
    }
}
