import BTCPriceCore
import BTCPriceNetworking
import Logging
import Synchronization
import Systemd

/// Detects a sleep of the machine from the clocks: `CLOCK_BOOTTIME` advances during it, `CLOCK_MONOTONIC` does not.
struct SuspendDetector {
    /// Shorter than any sleep, longer than the time between the two readings.
    private static let least = Duration.milliseconds(500)
    private var ahead: Duration?

    /// - Parameters:
    ///   - boottime: What `CLOCK_BOOTTIME` has counted since a moment of the caller's choice.
    ///   - monotonic: What `CLOCK_MONOTONIC` has counted since then.
    /// - Returns: The length of the sleep since the last call; `nil` if there was none.
    mutating func slept(boottime: Duration, monotonic: Duration) -> Duration? {
        let now = boottime - monotonic
        defer { ahead = now }
        guard let ahead, now - ahead >= Self.least else { return nil }
        return now - ahead
    }
}

/// Handles a sleep of the machine: the ticks stop before it and start at once after it, on new connections, since the kept ones are
/// dead. logind announces the sleep if the bus is available; else the first tick detects it from the clocks.
final class SuspendMonitor: TickTarget {
    /// The longest time awake between the announcement of a sleep and the sleep.
    private static let longestFarewell = Duration.seconds(60)

    private let engine: PriceEngine
    private let client: ExchangeClient
    private let clock: TickClock
    private let logger: Logger
    private let detector = Mutex(SuspendDetector())
    private let started = (boottime: ContinuousClock.now, monotonic: SuspendingClock.now)

    init(engine: PriceEngine, client: ExchangeClient, clock: TickClock, logger: Logger) {
        self.engine = engine
        self.client = client
        self.clock = clock
        self.logger = logger
    }

    /// - Returns: The listener for logind's signals. The caller must keep it.
    func follow(_ control: TickControl) -> SleepSignals {
        let orders = AsyncStream<Bool>.makeStream()
        Task {
            await Self.obey(
                orders.stream, suspend: { await control.suspend() }, wake: { await self.wake(control) },
                // This clock counts only the time awake.
                farewell: { try await Task.sleep(for: Self.longestFarewell, clock: .suspending) })
        }
        let signals = SleepSignals { orders.continuation.yield($0) }
        signals.start()
        return signals
    }

    /// Handles the signals in order: a wake-up must not overtake its sleep. If no sleep comes in time, the machine counts as awake.
    static func obey(
        _ orders: AsyncStream<Bool>, suspend: @escaping @Sendable () async -> Void,
        wake: @escaping @Sendable () async -> Void, farewell: @escaping @Sendable () async throws -> Void
    ) async {
        var unannounced: Task<Void, any Error>?
        for await isAboutToSleep in orders {
            // The farewell of the last sleep must not end this one.
            unannounced?.cancel()
            _ = await unannounced?.result
            guard isAboutToSleep else {
                await wake()
                continue
            }
            await suspend()
            unannounced = Task {
                try await farewell()
                await wake()
            }
        }
    }

    private func wake(_ control: TickControl) async {
        let hasSlept = notice()
        startAnew()
        // If the ticks ran again before the sleep, their streams have dead connections.
        if hasSlept { await engine.restartStreams() }
        await control.wake()
    }

    func tick(_ tick: Tick, of currency: Currency) async {
        if notice() {
            startAnew()
            await engine.restartStreams()
        }
        await engine.tick(tick, of: currency)
    }

    func paused(_ ticking: Ticking) async { await engine.paused(ticking) }

    func resumed() async { await engine.resumed() }

    private func startAnew() {
        client.dropConnections()
        clock.machineResumed()
    }

    /// - Returns: Whether the machine has slept since the last call.
    private func notice() -> Bool {
        let slept = detector.withLock {
            $0.slept(boottime: started.boottime.duration(to: .now), monotonic: started.monotonic.duration(to: .now))
        }
        guard let slept else { return false }
        logger.tell(
            .slept,
            "The machine slept for \(slept.components.seconds) s: the daemon opens new connections to the exchanges.")
        return true
    }
}
