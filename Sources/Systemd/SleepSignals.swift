import CSystemd
import Dispatch

/// Tells when the machine is about to sleep and when it is awake again: logind's `PrepareForSleep` (org.freedesktop.login1(5)).
///
/// On a thread of its own that waits for nothing else: it costs no wake-up between the two.
package final class SleepSignals: Sendable {
    private let handler: @Sendable (_ isAboutToSleep: Bool) -> Void

    /// - Parameter handler: Called with true before a sleep and with false after it; must not block.
    package init(_ handler: @escaping @Sendable (_ isAboutToSleep: Bool) -> Void) {
        self.handler = handler
    }

    /// Begins to listen. Where there is no bus nothing is told, and where it goes away, the machine is told to be awake: whoever
    /// waits for that would wait for ever.
    package func start() {
        // On another thread, since a start must not wait for the bus.
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
        // The clocks have to do from here on.
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
