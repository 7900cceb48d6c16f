import BTCPriceCore
import BTCPriceSocket
import CMosquitto
import COpenSSL
import CommandLine
import Dispatch
import Files
import Glibc
import Logging
import Synchronization
import Systemd
import UnixSignals

/// The satellite as a program: it creates the parts, runs them, and ends them in order.
struct Fleet {
    private let logger: Logger
    private let manager = ServiceManager()
    private let environment = processEnvironment()

    static func main() async -> Never {
        let command = FleetCommand.program.readOrExit(Array(Swift.CommandLine.arguments.dropFirst())) {
            line throws(UsageError) in try FleetCommand(line)
        }
        // If a broker or a client is gone, the write must fail with an error, not end the process.
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "btc-price-fleet") {
            JournalLogHandler.orStandardError(identifier: $0, environment: processEnvironment())
        }
        do {
            let fleet = Fleet(logger: logger)
            switch command {
            case .publish(let broker, let socket, let name, let isForHomeAssistant):
                try await fleet.publish(broker, socket, name: name, isForHomeAssistant: isForHomeAssistant)
            case .follow(let broker, let directory, let publishers):
                try await fleet.follow(broker, directory, publishers)
            }
            exit(0)
        } catch {
            logger.error("\(error)")
            exit(1)
        }
    }

    private func publish(
        _ broker: BrokerOptions, _ named: String?, name: String, isForHomeAssistant: Bool
    ) async throws(FleetStartFailure) {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let settings = try brokerSettings(broker, keepAlive: 5)
        if let path = settings.certificateFile, let owner = Self.commonName(try Self.content(path)), owner != name {
            logger.warning(
                "The certificate is \(owner.printable)'s, not \(name)'s: a broker with the rules of fleet.md drops what \(name) publishes. Give --name \(owner.printable), or the certificate of \(name)."
            )
        }
        let socket = SocketSearch.finder(named: named, environment: { environment[$0] }, uid: getuid())
        let news = DaemonNews()
        let loop = BrokerLoop<Publishing>(settings, logger: logger) { _ in }
        loop.start(
            Publishing(name: name, bootID: Self.random(), isForHomeAssistant: isForHomeAssistant, news: news))
        let watch = PriceWatch(socket: socket)
        let hasComplained = Atomic(false)
        watch.start(.ticks) { [logger] seen in
            switch seen {
            case .state(let message, let interval):
                if hasComplained.exchange(false, ordering: .relaxed) { logger.info("The daemon is reachable again.") }
                news.put(message, interval: interval, at: ObservationTime.now().boottime)
            case .kept(let currencies, _): news.put(kept: currencies)
            case .gone(let error):
                if !hasComplained.exchange(true, ordering: .relaxed) {
                    logger.warning("The daemon can't be reached: \(error). Nothing is published until it is back.")
                }
                news.daemonIsGone()
            }
            loop.wake()
        }
        let poll = SourcePoll(socket: socket) { reports in
            news.put(reports)
            loop.wake()
        }
        poll.start()
        ready("Publishing as \(name)", settings)
        for await _ in signals { break }
        manager.stopping()
        watch.stop()
        poll.stop()
        loop.stop()
        logger.info("Stopped.")
    }

    private func follow(_ broker: BrokerOptions, _ directory: String, _ publishers: [String]) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        ServerLimits.raiseDescriptors()
        let settings = try brokerSettings(broker, keepAlive: 30)
        let most = publishers.isEmpty ? Following.most + 1 : publishers.count
        let sockets = PublisherSockets(directory: directory, most: most, logger: logger)
        for name in publishers { try sockets.add(name) }
        let loop = BrokerLoop<Following>(settings, logger: logger) { sockets.perform($0) }
        loop.start(Following(named: publishers))
        let whom = publishers.isEmpty ? "all publishers" : publishers.joined(separator: ", ")
        ready("Following \(whom)", settings)
        for await _ in signals { break }
        manager.stopping()
        loop.stop()
        sockets.stop()
        logger.info("Stopped.")
    }

    private func ready(_ what: String, _ settings: BrokerSettings) {
        if !settings.address.isEncrypted, !settings.address.isLocal {
            logger.warning(
                "The connection to the broker is not encrypted: anyone on the network path can change the price.")
        }
        manager.ready(status: "\(what) at \(settings.address)")
        logger.info("Ready: \(what.prefix(1).lowercased() + what.dropFirst()) at the broker \(settings.address).")
    }

    private func brokerSettings(_ options: BrokerOptions, keepAlive: Int32) throws(FleetStartFailure) -> BrokerSettings
    {
        mosquitto_lib_init()
        var settings = BrokerSettings(
            address: options.broker, clientID: "btc-price-fleet-\(Self.random())", keepAlive: keepAlive)
        settings.authorityFile = options.caFile ?? credential("broker-ca")
        settings.certificateFile = options.certificate ?? credential("broker-certificate")
        settings.keyFile = options.key ?? credential("broker-key")
        settings.user = options.user
        if let path = options.passwordFile ?? credential("broker-password") {
            settings.password = try Self.password(path)
        }
        guard (settings.certificateFile == nil) == (settings.keyFile == nil) else {
            throw FleetStartFailure(
                description: "a certificate and its key belong together: give --certificate and --key")
        }
        for path in [settings.authorityFile, settings.certificateFile, settings.keyFile].compactMap(\.self) {
            // Notes between certificates may have any encoding. What else is wrong with the file, the TLS library says.
            try Self.refuseEncrypted(String(decoding: Self.content(path), as: UTF8.self), path)
        }
        return settings
    }

    /// The file of a credential that systemd has passed (systemd.exec(5), LoadCredential=).
    private func credential(_ name: String) -> String? {
        guard let path = environment["CREDENTIALS_DIRECTORY"].map({ "\($0)/\(name)" }) else { return nil }
        // Any other error is reported when the file is read.
        return access(path, F_OK) == 0 || errno != ENOENT ? path : nil
    }

    private static func refuseEncrypted(_ text: String, _ path: String) throws(FleetStartFailure) {
        do throws(Credentials.Failure) {
            try Credentials.refuseEncrypted(text, path)
        } catch {
            throw FleetStartFailure(description: error.description)
        }
    }

    private static func password(_ path: String) throws(FleetStartFailure) -> String {
        guard let text = String(validating: try content(path, mayBePipe: true), as: UTF8.self) else {
            throw FleetStartFailure(description: "the password in \(path) is not a text")
        }
        try refuseEncrypted(text, path)
        return String(text.prefix { !$0.isNewline })
    }

    private static func content(_ path: String, mayBePipe: Bool = false) throws(FleetStartFailure) -> [UInt8] {
        do throws(FileFailure) {
            return try fileContent(path, atMost: 1, mayBePipe: mayBePipe)
        } catch {
            throw FleetStartFailure(description: "cannot read \(error)")
        }
    }

    /// The common name in the subject of a PEM file's first certificate; `nil` if it has none, or is not a certificate.
    private static func commonName(_ file: [UInt8]) -> String? {
        let found = file.withUnsafeBytes { bytes in
            let text = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
            defer { BIO_free(text) }
            return PEM_read_bio_X509(text, nil, nil, nil)
        }
        guard let certificate = found else { return nil }
        defer { X509_free(certificate) }
        var name = [UInt8](repeating: 0, count: 256)
        let length = name.withUnsafeMutableBytes {
            X509_NAME_get_text_by_NID(
                X509_get_subject_name(certificate), NID_commonName, $0.assumingMemoryBound(to: CChar.self).baseAddress,
                Int32($0.count))
        }
        return length < 0 ? nil : String(decoding: name.prefix(Int(length)), as: UTF8.self)
    }

    private static func random() -> String { String(UInt64.random(in: 1 ... .max), radix: 16) }
}

/// An error that keeps the program from starting.
struct FleetStartFailure: Error, CustomStringConvertible {
    let description: String
}

/// Requests the reports of the daemon's sources every 10 s, which a watch does not include. On its own thread, since the calls block.
final class SourcePoll: Sendable {
    private let socket: @Sendable () -> String
    private let told: @Sendable ([SourceReport]) -> Void
    private let mustStop = DispatchSemaphore(value: 0)

    /// - Parameter told: Called with the reports, on the poll's thread.
    init(socket: @escaping @Sendable () -> String, told: @escaping @Sendable ([SourceReport]) -> Void) {
        self.socket = socket
        self.told = told
    }

    func start() {
        DispatchQueue(label: "io.btcpriced.sources").async {
            repeat {
                do throws(ClientError) {
                    var connection = try PriceConnection(path: self.socket(), timeout: .seconds(2))
                    self.told(try connection.listSources())
                } catch {
                    // The watch reports why the daemon can't be reached.
                }
            } while self.mustStop.wait(timeout: .now() + .seconds(10)) == .timedOut
        }
    }

    func stop() { mustStop.signal() }
}
