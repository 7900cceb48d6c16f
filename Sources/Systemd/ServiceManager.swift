import CSystemd
import Glibc
import Synchronization

/// Reports the service's state to systemd (sd_notify(3)), without waiting until it is read. Without systemd, calls have no effect.
package final class ServiceManager: Sendable {
    /// How often systemd expects a sign of life; `nil` if it expects none (sd_watchdog_enabled(3)).
    package let watchdogInterval: Duration?

    /// Whether the service is stopping. A reload that is under way then reports nothing more.
    private let isStopping = Mutex(false)

    /// Reads systemd's settings from the environment.
    package init() {
        var microseconds: UInt64 = 0
        watchdogInterval = sd_watchdog_enabled(0, &microseconds) > 0 ? .microseconds(microseconds) : nil
    }

    /// Reports that the service is up, with its status line.
    package func ready(status: String) {
        notifyUnlessStopping("READY=1\nSTATUS=\(Self.oneLine(status))")
    }

    /// Reports a reload of the configuration; ``ready(status:)`` follows (sd_notify(3), RELOADING=1).
    package func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        notifyUnlessStopping("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)")
    }

    package func status(_ text: String) {
        notify("STATUS=\(Self.oneLine(text))")
    }

    /// Sends a sign of life to the watchdog.
    package func alive() {
        notify("WATCHDOG=1")
    }

    /// Reports that the service is stopping. This is final.
    package func stopping() {
        isStopping.withLock { isStopping in
            isStopping = true
            notify("STOPPING=1")
        }
    }

    private func notifyUnlessStopping(_ state: String) {
        isStopping.withLock { isStopping in
            if !isStopping { notify(state) }
        }
    }

    private func notify(_ state: String) {
        Outbox.notifications.send { _ in _ = sd_notify(0, state) }
    }

    /// A status is one line: a second line would be read as another field.
    private static func oneLine(_ text: String) -> String {
        let space = UInt8(ascii: " ")
        guard text.utf8.contains(where: { $0 < space }) else { return text }
        return String(decoding: text.utf8.map { max($0, space) }, as: UTF8.self)
    }
}
