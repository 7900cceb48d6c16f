import CSystemd
import Dispatch

/// Reports when the machine is about to sleep and when it has woken: logind's `PrepareForSleep` (org.freedesktop.login1(5)).
///
/// Runs on its own thread, which waits for nothing else, so it causes no wake-ups in between.
package final class SleepSignals: Sendable {
    private let handler: @Sendable (_ isAboutToSleep: Bool) -> Void

    /// - Parameter handler: Called with true before a sleep and with false after it; must not block.
    package init(_ handler: @escaping @Sendable (_ isAboutToSleep: Bool) -> Void) {
        self.handler = handler
    }

    /// Starts listening. Without a bus, the handler is never called. If the bus goes away, the handler is called with false:
    /// otherwise a caller would wait forever for the machine to wake.
    package func start() {
        // On another thread, because the start must not wait for the bus.
        DispatchQueue(label: "io.btcpriced.sleep-signals").async { self.run() }
    }

    private func run() {
        var bus: OpaquePointer?
        guard sd_bus_open_system(&bus) >= 0, let bus else { return }
        defer { sd_bus_unref(bus) }
        let result = sd_bus_match_signal(
            bus, nil, "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
            "PrepareForSleep", Self.told, Unmanaged.passUnretained(self).toOpaque())
        guard result >= 0 else { return }
        while true {
            let processed = sd_bus_process(bus, nil)
            if processed > 0 { continue }
            guard processed == 0, sd_bus_wait(bus, .max) >= 0 else { break }
        }
        // From here on, a sleep is detected from the clocks.
        handler(false)
    }

    private static let told: sd_bus_message_handler_t = { message, context, _ in
        var isAboutToSleep: Int32 = 0
        guard let context, sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isAboutToSleep) > 0 else {
            return 0
        }
        Unmanaged<SleepSignals>.fromOpaque(context).takeUnretainedValue().handler(isAboutToSleep != 0)
        return 0
    }
}
