import BTCPriceCore
import BTCPriceNetworking
import BTCPricePersistence
import BTCPriceSocket
import CLinux
import Configuration
import Files
import Glibc

/// `btc-priced --diagnose`: what a daemon with these settings would meet on this machine. It changes nothing, and sends no request.
struct Diagnosis {
    /// For each connection.
    private static let timeout = Duration.seconds(3)
    private static let correction = "Correct that, then restart the daemon."
    /// Below it, a file system counts as full: what the history of some days takes, and some copies of the last price.
    private static let leastFreeBytes: (state: UInt64, runtime: UInt64) = (16 << 20, 64 << 10)
    private static let leastFreeFiles: UInt64 = 100
    /// Before this version was made, 2026-01-01.
    private static let earliest = Timestamp(milliseconds: 1_767_225_600_000)

    private var message = DiagnosisMessage()

    /// - Parameter mayConnect: Whether names may be looked up, and connections opened.
    static func run(
        _ commandLine: DaemonCommandLine, environment: [String: String], mayConnect: Bool
    ) async -> DiagnosisMessage {
        var diagnosis = Diagnosis()
        do {
            let usual = Directories.configurationPath(environment: environment, uid: getuid())
            if let path = commandLine.configurationPath ?? usual, !isRoot, access(path, R_OK) != 0, errno == EACCES {
                // The daemon's user may read it.
                diagnosis.add("configuration", "\(path) can't be read by this user: root sees more.")
                return diagnosis.withMachine()
            }
            let file =
                try commandLine.configurationPath
                ?? usual.flatMap { path throws(SettingsError) in try Directories.exists(path) ? path : nil }
            let settings = try Settings.read(commandLine: commandLine, environment: environment, uid: getuid())
            if let caFile = settings.caFile, !isRoot, access(caFile, R_OK) != 0, errno == EACCES {
                diagnosis.add("configuration", "\(caFile) can't be read by this user: root sees more.")
            } else {
                try ExchangeClient.check(settings.clientSettings)
            }
            diagnosis.report(settings.warnings, of: file)
            diagnosis.lookAtDisks(settings.directories)
            if mayConnect { await diagnosis.connect(settings) }
        } catch {
            diagnosis.add("configuration", "\(error)", advice: correction)
        }
        return diagnosis.withMachine()
    }

    private static var isRoot: Bool { getuid() == 0 }

    /// The message, with what concerns no settings.
    private mutating func withMachine() -> DiagnosisMessage {
        lookAtClock()
        lookAtLimits()
        return message
    }

    /// - Parameter advice: What to do; `nil` if nothing is wrong.
    private mutating func add(_ subject: String, _ text: String, advice: String? = nil) {
        message.checks.append(
            .init(subject, isGood: advice == nil, text.printable, advice: advice.map(\.printable)))
    }

    /// - Parameter file: The configuration file; `nil` if there is none.
    private mutating func report(_ warnings: [String], of file: String?) {
        if warnings.isEmpty {
            add(
                "configuration",
                file.map { "\($0) is valid." } ?? "There is no configuration file; the defaults apply.")
        }
        for warning in warnings {
            add("configuration", warning, advice: "'btc-priced --print-config' shows what is in force.")
        }
    }

    // MARK: - The machine

    private mutating func lookAtLimits() {
        let descriptors = ServerLimits.descriptors
        let isEnough = descriptors >= ServerLimits.fewestDescriptors
        add(
            "limits", "\(descriptors) files may be open; \(ServerLimits.fewestDescriptors) are needed.",
            advice: isEnough ? nil : "Raise LimitNOFILE= of the unit, or 'ulimit -n'.")
    }

    private mutating func lookAtClock() {
        let isSynchronized = clinux_clock_is_synchronized() != 0
        let present = ObservationTime.now().wall
        add(
            "clock",
            "This machine's clock says \(present.utcText); the kernel says that it is \(isSynchronized ? "" : "not ")synchronized.",
            advice: present < Self.earliest ? "Set the clock: see timedatectl(1)." : nil)
    }

    private mutating func lookAtDisks(_ directories: Directories) {
        let least = Self.leastFreeBytes
        for (directory, leastBytes) in [(directories.state, least.state), (directories.runtime, least.runtime)] {
            guard let free = FreeSpace(directory) else {
                let number = errno
                let reason = String(cString: strerror(number))
                // The daemon makes it.
                if number == ENOENT { continue }
                if number == EACCES, !Self.isRoot {
                    add("disk", "\(directory) can't be seen by this user: root sees more.")
                    continue
                }
                add(
                    "disk", "\(directory): \(reason)",
                    advice: "See its permissions and those of the directories above it.")
                continue
            }
            if free.isReadOnly {
                add(
                    "disk", "\(directory) is on a file system that can only be read.",
                    advice: "Mount it with 'rw', or set another directory.")
            } else if free.bytes < leastBytes {
                add(
                    "disk", "\(directory): only \(free.bytes >> 10) KiB are free.",
                    advice: "Make room on its file system.")
            } else if let files = free.files, files < Self.leastFreeFiles {
                add(
                    "disk", "\(directory): only \(files) more files can be made.",
                    advice: "Make room on its file system.")
            } else {
                add("disk", "\(directory): \(free.bytes >> 20) MiB are free.")
            }
        }
    }

    // MARK: - The sources

    /// Opens a connection to each exchange, as the daemon does, and requests nothing: no limit counts that.
    private mutating func connect(_ settings: Settings) async {
        let loop = TickLoop()
        var client = settings.clientSettings
        client.connectTimeout = Self.timeout
        do {
            let client = try ExchangeClient(client, on: loop)
            var failing: [String: [String]] = [:]
            let exchanges = settings.sources.filter { $0.exchange != nil }
            await withTaskGroup(of: (String, PriceLoadingError?).self) { group in
                for exchange in exchanges {
                    group.addTask {
                        do throws(PriceLoadingError) {
                            try await client.tryConnection(to: exchange.address)
                            return (exchange.name, nil)
                        } catch {
                            return (exchange.name, error)
                        }
                    }
                }
                for await (name, error) in group {
                    guard let error else { continue }
                    failing[error.cause == .name ? "its name can't be resolved" : "\(error)", default: []].append(name)
                }
            }
            await client.shutdown()
            let reached = exchanges.count - failing.values.joined().count
            if reached > 0 { add("sources", "\(reached) of \(exchanges.count) exchanges can be reached.") }
            for (reason, names) in failing.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
                add(
                    "sources", "\(names.sorted().joined(separator: ", ")): \(reason)",
                    advice: "'btc-priced --try \(names[0])' shows more.")
            }
        } catch {
            add("configuration", "\(error)", advice: Self.correction)
        }
        await loop.shutDown()
    }
}
