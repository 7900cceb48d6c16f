import CSystemd
import Glibc

/// Tells systemd how the service is (sd_notify(3)). Without systemd every call is without effect.
package struct ServiceManager: Sendable {
    /// How often systemd expects a sign of life; `nil` where it expects none (sd_watchdog_enabled(3)).
    package let watchdogInterval: Duration?

    /// Reads what systemd asks for from the environment.
    package init() {
        var microseconds: UInt64 = 0
        watchdogInterval = sd_watchdog_enabled(0, &microseconds) > 0 ? .microseconds(microseconds) : nil
    }

    /// The service is up, and this is how it is.
    package func ready(status: String) {
        notify("READY=1\nSTATUS=\(Self.oneLine(status))")
    }

    /// It takes a new configuration; ``ready(status:)`` follows (sd_notify(3), RELOADING=1).
    package func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        notify("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)")
    }

    /// How it is, for `systemctl status`.
    package func status(_ text: String) {
        notify("STATUS=\(Self.oneLine(text))")
    }

    /// A sign of life.
    package func alive() {
        notify("WATCHDOG=1")
    }

    /// The service is going down. Final.
    package func stopping() {
        notify("STOPPING=1")
    }

    private func notify(_ state: String) {
        _ = sd_notify(0, state)
    }

    /// A status is one line; a second one would be taken for another field.
    private static func oneLine(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }
}
