import CLinux
import Glibc

/// A signal that ends the wait of a blocking thread. It is an eventfd(2).
package final class EventSignal: Sendable {
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

    /// Makes it unset again.
    package func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
    }

    /// Waits until the signal is set, for at most this duration in whole seconds.
    func wait(_ longest: Duration) {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&poller, 1, Int32(clamping: longest.components.seconds * 1000))
    }
}
