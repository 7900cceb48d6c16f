import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import Synchronization
import Systemd

/// The time of the ticker's last sign of life.
final class Heartbeat: Sendable {
    private let last: Atomic<Int64>

    init(_ boottime: BootTime) {
        last = Atomic(boottime.milliseconds)
    }

    func beat(at boottime: BootTime) {
        last.store(boottime.milliseconds, ordering: .relaxed)
    }

    var lastBeat: BootTime { BootTime(milliseconds: last.load(ordering: .relaxed)) }
}

/// The state that decides whether the watchdog is notified: a pure value.
struct SignsOfLife {
    /// Whether the socket's loop has answered the last ping.
    let loopHasAnswered: Bool
    /// The time since the ticker's last sign of life.
    let tickerSilence: Duration
    /// The longest silence of a healthy ticker.
    let longestSilence: Duration
    /// Whether the ticks are paused on purpose.
    let isPaused: Bool

    /// Whether the loop and the ticker both make progress. A paused ticker counts as alive.
    var isAlive: Bool { loopHasAnswered && (isPaused || tickerSilence <= longestSilence) }
}

/// Notifies systemd's watchdog while the ticker and the socket's loop make progress, even if exchanges don't respond or ticks are paused.
struct WatchdogService: Service {
    let manager: ServiceManager
    let server: PriceServer
    let heartbeat: Heartbeat
    let isPaused: @Sendable () async -> Bool
    let running: Replaceable<RunningSettings>
    let clock: TickClock
    let now: TimeSource

    func run() async {
        guard let interval = manager.watchdogInterval else { return await Services.atTheEnd {} }
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
            // A third of systemd's timeout, so that one late wake-up is harmless.
            do { try await clock.sleep(until: clock.now.advanced(by: interval / 3)) } catch { return }
        }
    }
}
