import CSystemd
import Glibc

/// Shows notifications on the user's desktop (the Desktop Notifications Specification, 1.3), over the user's bus. Never waits for the server
/// that shows them. Not thread-safe.
package final class DesktopNotifications {
    private static let name = "org.freedesktop.Notifications"
    /// The longest wait for the bus itself, microseconds.
    private static let patience: UInt64 = 2_000_000
    /// After a failure, the bus is not tried for this time.
    private static let pause = Duration.seconds(30)

    private let application: String
    private var bus: OpaquePointer?
    /// The keys of the notifications whose number has not come yet, by the number of the call.
    private var asked: [UInt64: String] = [:]
    private var refusals: [String: String] = [:]
    /// Since when there is no bus, and why.
    private var lostAt: (since: ContinuousClock.Instant, reason: String)?
    /// The server's number of the last notification of each key.
    private var shown: [String: UInt32] = [:]

    /// - Parameter application: What the server calls the sender.
    package init(_ application: String) { self.application = application }

    deinit { sd_bus_flush_close_unref(bus) }

    /// To be polled for input; -1 without a bus.
    package var descriptor: Int32 { bus.map { sd_bus_get_fd($0) } ?? -1 }

    /// Shows a notification, in place of the one with the same key.
    /// - Parameter isCritical: Whether it stays until the user has closed it.
    /// - Returns: Why there is no desktop to show it on; `nil` if it was sent.
    package func show(_ title: String, _ body: String, key: String, isCritical: Bool) -> String? {
        // A bus that hangs is not waited for by each of many.
        if let lostAt, lostAt.since.duration(to: .now) < Self.pause { return lostAt.reason }
        let wasOpen = bus != nil
        let result = tryToShow(title, body, key, isCritical)
        // The bus may have been restarted.
        let isSent = result >= 0 || wasOpen && tryToShow(title, body, key, isCritical) >= 0
        if isSent { return nil }
        if result == -ENXIO || result == -ESRCH { return "no notification server" }
        let reason = "the user bus: \(String(cString: strerror(-result)))"
        lostAt = (.now, reason)
        return reason
    }

    private func tryToShow(_ title: String, _ body: String, _ key: String, _ isCritical: Bool) -> Int32 {
        if bus == nil {
            let result = sd_bus_open_user(&bus)
            guard result >= 0 else { return result }
            sd_bus_set_method_call_timeout(bus, Self.patience)
        }
        var owner: OpaquePointer?
        var result = sd_bus_get_name_creds(bus, Self.name, 0, &owner)
        sd_bus_creds_unref(owner)
        var cookie: UInt64 = 0
        if result >= 0 { result = send(title, body, replacing: shown[key] ?? 0, urgency: isCritical ? 2 : 1, &cookie) }
        if result >= 0 { asked[cookie] = key } else if result != -ENXIO, result != -ESRCH { close() }
        return result
    }

    /// Takes in what the server has replied.
    package func process() {
        while let bus {
            let result = sd_bus_process(bus, nil)
            if result < 0 { close() }
            guard result > 0 else { return }
        }
    }

    /// The keys of the notifications that the server has refused since the last call, and why.
    package func takeRefusals() -> [String: String] {
        defer { refusals = [:] }
        return refusals
    }

    private func close() {
        sd_bus_close_unref(bus)
        (bus, asked) = (nil, [:])
    }

    private func send(
        _ title: String, _ body: String, replacing number: UInt32, urgency: UInt8, _ cookie: inout UInt64
    ) -> Int32 {
        var message: OpaquePointer?
        var result = sd_bus_message_new_method_call(
            bus, &message, Self.name, "/org/freedesktop/Notifications", Self.name, "Notify")
        guard result >= 0 else { return result }
        defer { sd_bus_message_unref(message) }
        func add(_ step: Int32) { result = min(result, step) }
        func add(_ text: String) { add(sd_bus_message_append_basic(message, Self.type("s"), text)) }
        func open(_ kind: String, _ content: String) {
            add(sd_bus_message_open_container(message, Self.type(kind), content))
        }
        func close() { add(sd_bus_message_close_container(message)) }
        var (number, urgency, usual) = (number, urgency, Int32(-1))
        add(application)
        add(sd_bus_message_append_basic(message, Self.type("u"), &number))
        add("")
        add(title)
        // Servers may read it as markup.
        add(String(body.map { $0 == "<" || $0 == "&" ? " " : $0 }))
        open("a", "s")
        close()
        open("a", "{sv}")
        open("e", "sv")
        add("urgency")
        open("v", "y")
        add(sd_bus_message_append_basic(message, Self.type("y"), &urgency))
        close()
        close()
        close()
        add(sd_bus_message_append_basic(message, Self.type("i"), &usual))
        guard result >= 0 else { return result }
        result = sd_bus_call_async(
            bus, nil, message, Self.replied, Unmanaged.passUnretained(self).toOpaque(), UInt64.max)
        if result >= 0 { sd_bus_message_get_cookie(message, &cookie) }
        return result
    }

    private static func type(_ letter: String) -> CChar { letter.utf8.first.map { CChar(bitPattern: $0) } ?? 0 }

    private static let replied: sd_bus_message_handler_t = { message, context, _ in
        guard let context else { return 0 }
        let notifications = Unmanaged<DesktopNotifications>.fromOpaque(context).takeUnretainedValue()
        var (cookie, number) = (UInt64(0), UInt32(0))
        guard sd_bus_message_get_reply_cookie(message, &cookie) >= 0,
            let key = notifications.asked.removeValue(forKey: cookie)
        else { return 0 }
        if let error = sd_bus_message_get_error(message), let name = error.pointee.name {
            notifications.refusals[key] = "the server refuses it: \(String(cString: name))"
        } else if sd_bus_message_read_basic(message, type("u"), &number) > 0 {
            notifications.shown[key] = number
        }
        return 0
    }
}
