import CLinux
import Glibc

/// A signal that ends the waits of a blocking thread. It is an eventfd(2).
package final class StopSignal: Sendable {
    /// Readable once the signal is set; -1 if the system has no descriptor left.
    package let descriptor = clinux_eventfd()

    package init() {}

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    package func set() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }

    /// Waits until the signal is set, for at most this duration in whole seconds.
    package func wait(_ longest: Duration) {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&poller, 1, Int32(clamping: longest.components.seconds * 1000))
    }
}
