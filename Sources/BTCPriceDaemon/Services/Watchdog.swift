import BTCPriceCore
import BTCPriceServer
import ServiceLifecycle
import Synchronization
import Systemd
import BTCPriceNetworking

/// When the ticker last gave a sign of life, `CLOCK_BOOTTIME` in milliseconds.
final class Heartbeat: Sendable {
    private let last: Atomic<Int64>

    init(_ boottime: Int64) {
        last = Atomic(boottime)
    }

    func beat(at boottime: Int64) {
        last.store(boottime, ordering: .relaxed)
    }

    var lastBeat: Int64 { last.load(ordering: .relaxed) }
}

/// What the watchdog is told from: a pure value.
struct SignsOfLife {
    /// Whether the socket's loop has answered what it was asked last.
    let loopHasAnswered: Bool
    /// Since the ticker gave its last sign of life.
    let tickerSilence: Duration
    /// The longest that a healthy ticker is silent.
    let longestSilence: Duration
    /// Whether the ticks stand still on purpose.
    let isPaused: Bool

    /// Both have to move on; deliberately paused is alive.
    var isAlive: Bool { loopHasAnswered && (isPaused || tickerSilence <= longestSilence) }
}

/// Tells systemd's watchdog that the daemon lives: only while the ticker and the socket's loop both move on. That exchanges do
/// not answer, and that the ticks are paused on purpose, is no reason to be killed.
struct WatchdogService: Service {
    let manager: ServiceManager
    let server: PriceServer
    let heartbeat: Heartbeat
    let isPaused: @Sendable () async -> Bool
    let running: RunningSettings
    let clock: TickClock
    let now: TimeSource

    func run() async throws {
        guard let interval = manager.watchdogInterval else {
            try await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown {
            var pinged: UInt64 = 0
            while !Task.isCancelled {
                let signs = SignsOfLife(
                    loopHasAnswered: server.lastBeat == pinged,
                    tickerSilence: .milliseconds(now().boottime - heartbeat.lastBeat),
                    longestSilence: running.value.longestSilence,
                    isPaused: await isPaused())
                if signs.isAlive { manager.alive() }
                pinged += 1
                server.ping(pinged)
                // A third of what systemd grants: one late wake-up does no harm.
                do { try await clock.sleep(until: clock.now.advanced(by: interval / 3)) } catch { return }
            }
        }
    }
}
