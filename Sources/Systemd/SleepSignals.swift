import CSystemd

/// Tells when the machine is about to sleep and when it is awake again: logind's `PrepareForSleep` (org.freedesktop.login1(5)).
///
/// On a thread of its own that waits for nothing else: it costs no wake-up between the two.
public final class SleepSignals: Sendable {
    private let handler: @Sendable (_ isAboutToSleep: Bool) -> Void

    /// - Parameter handler: Called with true before a sleep and with false after it; must not block.
    public init(_ handler: @escaping @Sendable (_ isAboutToSleep: Bool) -> Void) {
        self.handler = handler
    }

    /// Begins to listen. Where there is no bus, or none any more, nothing is told.
    /// - Returns: Whether there is a bus.
    public func start() -> Bool {
        var bus: OpaquePointer?
        guard sd_bus_open_system(&bus) >= 0, let bus else { return false }
        let result = sd_bus_match_signal(
            bus, nil, "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
            "PrepareForSleep", Self.told, Unmanaged.passUnretained(self).toOpaque())
        guard result >= 0 else {
            sd_bus_unref(bus)
            return false
        }
        let held = Bus(pointer: bus)
        Thread.start {
            // Keeps `self` for as long as it may be called.
            withExtendedLifetime(self) { held.run() }
        }
        return true
    }

    private static let told: sd_bus_message_handler_t = { message, context, _ in
        var isAboutToSleep: Int32 = 0
        guard let context, sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isAboutToSleep) > 0 else {
            return 0
        }
        Unmanaged<SleepSignals>.fromOpaque(context).takeUnretainedValue().handler(isAboutToSleep != 0)
        return 0
    }

    /// A connection to the bus. Unchecked: it goes to one thread and is used there alone.
    private struct Bus: @unchecked Sendable {
        let pointer: OpaquePointer

        func run() {
            while true {
                let processed = sd_bus_process(pointer, nil)
                if processed > 0 { continue }
                // The bus is gone: the clocks have to do from here on.
                guard processed == 0, sd_bus_wait(pointer, .max) >= 0 else { break }
            }
            sd_bus_unref(pointer)
        }
    }
}
