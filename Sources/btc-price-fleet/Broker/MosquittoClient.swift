import CMosquitto
import Glibc

/// The address of a broker, and the credentials for it.
struct BrokerSettings: Sendable {
    var address: BrokerAddress
    /// Different at each start, because a broker disconnects the older of two clients with the same ID.
    var clientID: String
    /// The MQTT keep alive, seconds (MQTT 3.1.1, section 3.1.2.10).
    var keepAlive: Int32
    var user: String?
    var password: String?
    /// A PEM file with the certificate authorities to trust; `nil` for those of the system.
    var authorityFile: String?
    /// PEM files with the client's certificate and its key.
    var certificateFile: String?
    var keyFile: String?
}

/// One connection to a broker, over libmosquitto. Every call is on the thread of the loop that owns it.
///
/// libmosquitto's own loop uses select(2) and fails permanently with a descriptor above 1023, so the owner waits for ``descriptor``.
final class MosquittoClient {
    enum Event {
        case connected
        /// The connection has ended or was never established. The reason is one line.
        case ended(String)
        case message(BrokerMessage)
    }

    /// A connection can't be made with these settings. The reason is one line.
    struct Failure: Error {
        let reason: String
    }

    /// A longer payload is cut to this size, bytes, which is more than any reader accepts.
    private static let longest = 131_073
    /// The directory of the system's certificate authorities.
    private static let systemAuthorities = "/etc/ssl/certs"

    private let handle: OpaquePointer
    private var events: [Event] = []
    private var hasEnded = false
    /// The last line that the library logged as an error. The reason for a failed handshake is available only there.
    private var complaint: String?

    /// Starts to connect. The name lookup may block.
    /// - Throws: ``Failure``
    init(_ settings: BrokerSettings, will: BrokerMessage?) throws(Failure) {
        guard let handle = mosquitto_new(settings.clientID, true, nil) else {
            throw Failure(reason: String(cString: strerror(errno)))
        }
        self.handle = handle
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        setCallbacks()
        mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, Int32(MQTT_PROTOCOL_V311))
        mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1)
        if let user = settings.user { try check(mosquitto_username_pw_set(handle, user, settings.password)) }
        if settings.address.isEncrypted {
            let authorities = settings.authorityFile
            try check(
                mosquitto_tls_set(
                    handle, authorities, authorities == nil ? Self.systemAuthorities : nil, settings.certificateFile,
                    settings.keyFile, nil))
        }
        if let will {
            try check(
                mosquitto_will_set(
                    handle, will.topic, Int32(will.payload.count), will.payload, will.delivery.rawValue, will.isRetained
                ))
        }
        let address = settings.address
        try check(mosquitto_connect_async(handle, address.host, Int32(address.port), settings.keepAlive))
    }

    deinit {
        mosquitto_destroy(handle)
    }

    /// The socket; -1 without one. May change with every call.
    var descriptor: Int32 { mosquitto_socket(handle) }

    var wantsToWrite: Bool { mosquitto_want_write(handle) }

    /// What has happened since the last call.
    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    func read() { note(mosquitto_loop_read(handle, 1)) }

    func write() { note(mosquitto_loop_write(handle, 1)) }

    /// Performs the library's periodic work. Call it about once a second.
    func tend() { note(mosquitto_loop_misc(handle)) }

    func publish(_ message: BrokerMessage) {
        note(
            mosquitto_publish(
                handle, nil, message.topic, Int32(message.payload.count), message.payload, message.delivery.rawValue,
                message.isRetained))
    }

    func subscribe(_ filter: String) { note(mosquitto_subscribe(handle, nil, filter, 0)) }

    func unsubscribe(_ filter: String) { note(mosquitto_unsubscribe(handle, nil, filter)) }

    /// Disconnects cleanly, so that the broker does not publish the last will.
    func disconnect() { _ = mosquitto_disconnect(handle) }

    // MARK: - Results and callbacks of the library

    private func check(_ result: Int32) throws(Failure) {
        guard result != MOSQ_ERR_SUCCESS.rawValue else { return }
        throw Failure(reason: reason(result, errno))
    }

    private func note(_ result: Int32) {
        let number = errno
        if result != MOSQ_ERR_SUCCESS.rawValue { ended(reason(result, number)) }
    }

    private func ended(_ reason: String) {
        guard !hasEnded else { return }
        hasEnded = true
        events.append(.ended(reason))
    }

    private func reason(_ result: Int32, _ number: Int32) -> String {
        switch mosq_err_t(rawValue: result) {
        // The library reports a TLS failure this way.
        case MOSQ_ERR_ERRNO where number == EPROTO: complaint ?? "it does not accept this machine's certificate"
        case MOSQ_ERR_ERRNO: number == 0 ? "the connection was closed" : String(cString: strerror(number))
        case MOSQ_ERR_EAI: "its name can't be resolved"
        case MOSQ_ERR_CONN_LOST, MOSQ_ERR_NO_CONN: complaint ?? "the connection was closed"
        case MOSQ_ERR_TLS: complaint ?? "the TLS handshake failed"
        case MOSQ_ERR_KEEPALIVE: "it is silent"
        case MOSQ_ERR_INVAL: complaint ?? "the certificate, its key or the authorities can't be read"
        default: complaint ?? String(cString: mosquitto_strerror(result)).lowercased()
        }
    }

    private static func of(_ userData: UnsafeMutableRawPointer?) -> MosquittoClient? {
        userData.map { Unmanaged<MosquittoClient>.fromOpaque($0).takeUnretainedValue() }
    }

    private func setCallbacks() {
        mosquitto_connect_callback_set(handle) { _, userData, code in
            guard let client = MosquittoClient.of(userData) else { return }
            if code == 0 {
                client.events.append(.connected)
            } else {
                // MQTT 3.1.1, table 3.1
                client.ended("it refuses: \(String(cString: mosquitto_connack_string(code)).lowercased())")
            }
        }
        mosquitto_disconnect_callback_set(handle) { _, userData, code in
            guard let client = MosquittoClient.of(userData) else { return }
            client.ended(code == 0 ? "disconnected" : client.reason(code, errno))
        }
        mosquitto_message_callback_set(handle) { _, userData, message in
            guard let client = MosquittoClient.of(userData), let message = message?.pointee, let topic = message.topic
            else { return }
            // The payload is valid only in this callback.
            let payload = UnsafeRawBufferPointer(
                start: message.payload, count: min(Int(message.payloadlen), MosquittoClient.longest))
            client.events.append(
                .message(
                    BrokerMessage(
                        topic: String(cString: topic), payload: Array(payload), isRetained: message.retain)))
        }
        mosquitto_subscribe_callback_set(handle) { _, userData, _, count, granted in
            guard let client = MosquittoClient.of(userData), let granted else { return }
            // MQTT 3.1.1, section 3.9.3
            if (0..<Int(count)).contains(where: { granted[$0] == 0x80 }) { client.ended("it refuses the subscription") }
        }
        mosquitto_log_callback_set(handle) { _, userData, level, text in
            guard level == MOSQ_LOG_ERR, let client = MosquittoClient.of(userData), let text else { return }
            client.complaint = MosquittoClient.short(String(cString: text))
        }
    }

    /// Returns only the reason from a line such as `OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed`.
    private static func short(_ line: String) -> String {
        guard line.hasPrefix("OpenSSL Error") else { return line.lowercased() }
        return line.split(separator: ":").last?.split(separator: " ").joined(separator: " ") ?? line
    }
}
