import CLinux
import Glibc

/// Ends the waits of a blocking thread: an eventfd(2).
final class StopSignal: Sendable {
    /// Readable once the signal is set; -1 if the system has no descriptor left.
    let descriptor = clinux_eventfd()

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    func set() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }

    /// Waits until the signal is set, at most this long.
    func wait(_ longest: Duration) {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&poller, 1, Int32(clamping: longest.components.seconds * 1000))
    }
}
