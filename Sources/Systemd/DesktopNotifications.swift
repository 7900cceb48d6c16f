import CSystemd
import Glibc

/// Shows notifications on the user's desktop (the Desktop Notifications Specification, 1.3), over the user's bus. Never waits for the server
/// that shows them. Not thread-safe.
package final class DesktopNotifications {
    private static let name = "org.freedesktop.Notifications"
    /// The longest wait for the bus itself, microseconds.
    private static let patience: UInt64 = 2_000_000

    private let application: String
    private var bus: OpaquePointer?
    /// The keys of the notifications whose number has not come yet, by the number of the call.
    private var asked: [UInt64: String] = [:]
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
        var opened: OpaquePointer?
        if bus == nil {
            let result = sd_bus_open_user(&opened)
            guard result >= 0 else { return "no user bus: \(String(cString: strerror(-result)))" }
            bus = opened
            sd_bus_set_method_call_timeout(bus, Self.patience)
        }
        var owner: OpaquePointer?
        let found = sd_bus_get_name_creds(bus, Self.name, 0, &owner)
        sd_bus_creds_unref(owner)
        guard found >= 0 else {
            if found == -ENXIO || found == -ESRCH { return "no notification server" }
            return lost(found)
        }
        var cookie: UInt64 = 0
        let result = send(title, body, replacing: shown[key] ?? 0, urgency: isCritical ? 2 : 1, &cookie)
        guard result >= 0 else { return lost(result) }
        asked[cookie] = key
        _ = sd_bus_flush(bus)
        return nil
    }

    /// Takes in what the server has replied.
    package func process() {
        while let bus {
            let result = sd_bus_process(bus, nil)
            if result < 0 { _ = lost(result) }
            guard result > 0 else { return }
        }
    }

    private func lost(_ result: Int32) -> String {
        sd_bus_close_unref(bus)
        (bus, asked) = (nil, [:])
        return "the user bus: \(String(cString: strerror(-result)))"
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
            let key = notifications.asked.removeValue(forKey: cookie),
            sd_bus_message_read_basic(message, type("u"), &number) > 0
        else { return 0 }
        notifications.shown[key] = number
        return 0
    }
}
