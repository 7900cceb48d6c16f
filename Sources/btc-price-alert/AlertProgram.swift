import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Configuration
import Files
import Glibc
import Logging
import Systemd
import UnixSignals

/// The commands, as a program.
struct AlertProgram {
    /// The command failed.
    private struct Failure: Error {
        let message: String
    }

    private static let program = AlertCommand.program

    private let paths: AlertPaths
    private let environment: [String: String]
    private let named: String?

    static func main() async -> Never {
        let environment = processEnvironment()
        let (command, line) = program.readOrExit(Array(Swift.CommandLine.arguments.dropFirst())) {
            line throws(UsageError) in (try AlertCommand(line, environment), line)
        }
        let paths = AlertPaths(isSystem: line.has(AlertCommand.system), environment: environment)
        let alerts = AlertProgram(paths: paths, environment: environment, named: line.text(AlertCommand.socket))
        do throws(Failure) {
            switch command {
            case .run: try alerts.serve()
            case .add(let name, let alert): try alerts.add(name, alert, line)
            case .list: try alerts.list()
            case .test(let name): try alerts.test(name)
            case .pause(let name): try alerts.pause(name)
            case .resume(let name): try alerts.resume(name)
            case .remove(let name): try alerts.remove(name)
            }
            exit(0)
        } catch {
            program.fail(error.message, status: 1)
        }
    }

    private var socket: @Sendable () -> String { AlertCommand.socket(named, environment) }

    private func say(_ text: String) { Self.program.write("\(text.printable)\n") }

    /// Reads or changes the file.
    private func file<Result>(_ body: (AlertFile) throws(SettingsError) -> Result) throws(Failure) -> Result {
        do throws(SettingsError) {
            return try body(paths.file)
        } catch {
            throw Failure(message: error.description)
        }
    }

    private func alert(_ name: String) throws(Failure) -> Alert {
        let content = try file { file throws(SettingsError) in try file.content() }
        if let alert = content.alerts.first(where: { $0.name == name }) { return alert }
        guard content.names.contains(name) else {
            throw Failure(message: paths.file.unknown(name, content.names).description)
        }
        throw Failure(message: content.mistakes.map(\.description).joined(separator: "; "))
    }

    // MARK: - Service

    private func serve() throws(Failure) {
        // If a reader is gone, a write must fail, not end the process.
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "btc-price-alert") { [environment] in
            JournalLogHandler.orStandardError(identifier: $0, environment: environment)
        }
        if let reason = FileSystem.makeDirectory(paths.state, mode: paths.modes.directory) {
            throw Failure(message: reason)
        }
        let lock: StateLock
        do throws(StateLock.Failure) {
            lock = try StateLock(directory: paths.state)
        } catch {
            switch error {
            case .alreadyRunning(let pid):
                throw Failure(message: "the alerts are kept already\(pid.map { ", by process \($0)" } ?? "")")
            case .unusable(let path, let reason): throw Failure(message: "\(path): \(reason)")
            }
        }
        let (news, manager) = (AlertNews(), ServiceManager())
        Task.detached {
            for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint) { break }
            manager.stopping()
            news.stop()
        }
        let watch = PriceWatch(socket: socket)
        watch.start(.ticks) { news.put($0) }
        var service = AlertService(paths, socket: socket, news: news, logger: logger, manager: manager)
        service.run()
        watch.stop()
        logger.info("Stopped.")
        _ = consume lock
    }

    // MARK: - Commands

    private func add(_ named: String?, _ alert: Alert, _ line: ParsedLine) throws(Failure) {
        if let reason = FileSystem.makeDirectory(paths.file.folder, mode: paths.isSystem ? 0o755 : 0o700) {
            throw Failure(message: reason)
        }
        let known = try file { file throws(SettingsError) in try file.content().names }
        let name = named ?? Self.name(for: alert, known)
        var values: [(key: String, value: RawValue)] = []
        for field in AlertField.allCases where field != .exec && field != .currency && line.isSet(field) {
            values.append((field.rawValue, field.isFlag ? .flag(true) : .text(line.text(field.option) ?? "")))
        }
        values.append((AlertField.currency.rawValue, .text(alert.currency)))
        if !alert.command.isEmpty { values.append((AlertField.exec.rawValue, .list(alert.command))) }
        let now = TimestampFormatter(isUTC: true, isISO: true).string(from: ObservationTime.now().wall)
        values.append((AlertFile.added, .text(now)))
        try file { file throws(SettingsError) in try file.add(name, values) }
        say("\(name): \(alert.condition). It is in \(paths.file.path).")
        if paths.isSystem, alert.command.isEmpty { say("Only the journal tells of it: this service has no desktop.") }
        // Of one with the same name that was removed by hand.
        unlink("\(paths.paused)/\(name)")
        if let kept = keptCurrencies, !kept.contains(alert.currency) {
            say("! \(Alert.notKept(alert.currency)), only in \(kept.listed): \(alert.withoutPrice).")
        }
        if paths.isServed != true { startService() }
    }

    /// The currencies that the daemon keeps; `nil` if it can't be asked.
    private var keptCurrencies: [String]? {
        do throws(ClientError) {
            var connection = try PriceConnection(path: socket(), timeout: .seconds(2))
            return try connection.listCurrencies().map(\.currency)
        } catch {
            return nil
        }
    }

    /// A name that is not taken: `below-60000`, `change-5`.
    private static func name(for alert: Alert, _ known: [String]) -> String {
        let base =
            switch alert.rule.condition {
            case .below(let bound): "below-\(bound)"
            case .above(let bound): "above-\(bound)"
            case .change(.amount(let value), _), .change(.percent(let value), _): "change-\(value)"
            case .stale: "stale"
            case .unsure: "unsure"
            }
        let name = String(base.map { $0 == "." ? "_" : $0 }) + (alert.currency == "USD" ? "" : "-\(alert.currency)")
        return known.contains(name)
            ? (2...).lazy.map { "\(name)-\($0)" }.first { !known.contains($0) } ?? name : name
    }

    private func list() throws(Failure) {
        let content = try file { file throws(SettingsError) in try file.content() }
        let (records, kept) = (records(), content.alerts.isEmpty ? nil : keptCurrencies)
        let paused = Set(FileSystem.names(in: paths.paused))
        let timestamps = TimestampFormatter()
        for alert in content.alerts {
            let record = records?.first { $0.name == alert.name && $0.identity == alert.identity }
            say("\(alert.name): \(alert.condition)\(alert.repetition.isEmpty ? "" : "; \(alert.repetition)")")
            let ways = (alert.notifies ? ["a desktop notification"] : []) + alert.command.prefix(1)
            let standing = records == nil ? "" : Self.standing(record, isPaused: paused.contains(alert.name)) + "; "
            say("  \(standing)tells by \(ways.listed)")
            if let fired = record?.lastFired {
                say("  fired \(timestamps.string(from: fired)): \(record?.lastMessage ?? "")")
            }
            if let problem = record?.problem { say("  ! \(problem)") }
            if kept?.contains(alert.currency) == false { say("  ! \(Alert.notKept(alert.currency))") }
        }
        if content.names.isEmpty { say("There are no alerts in \(paths.file.path).") }
        if !content.alerts.isEmpty {
            switch paths.isServed {
            case nil: say("What they have seen is not this user's to read.")
            case false?: say("! The service does not run: 'systemctl \(start)' starts it.")
            case true?: if !paths.isSystem { say(lingering) }
            }
        }
        guard content.mistakes.isEmpty else {
            throw Failure(message: content.mistakes.map(\.description).joined(separator: "; "))
        }
    }

    private static func standing(_ record: AlertRecord?, isPaused: Bool) -> String {
        if isPaused { return "paused" }
        guard let record, record.position != nil || record.isOver else { return "new: no price was checked" }
        if record.isOver { return "over" }
        return record.position == .beyond ? "holds, and fires after it has been back" : "waits"
    }

    /// - Returns: `nil` if this user can't see them.
    private func records() -> [AlertRecord]? {
        if paths.isServed == nil { return nil }
        do {
            guard let bytes = try FileSystem.read(paths.records) else { return [] }
            return try AlertRecords(json: try JSONValue(parsing: bytes[...])).alerts
        } catch {
            say("! \(error)")
            return []
        }
    }

    /// What keeps the service running.
    private var lingering: String {
        let user = getpwuid(getuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(getuid())"
        return access("/var/lib/systemd/linger/\(user)", F_OK) == 0
            ? "The alerts are kept always: lingering is on for \(user)."
            : "The alerts are kept while \(user) is logged in; 'loginctl enable-linger' keeps them always."
    }

    private func test(_ name: String) throws(Failure) {
        let (alert, now) = (try alert(name), ObservationTime.now())
        if paths.isSystem, !alert.command.isEmpty {
            throw Failure(
                message: "the service runs its program with less rights and other credentials than this user has: "
                    + "'\(paths.journal)' shows how it ends")
        }
        var state = PriceState.empty(of: Currency(rawValue: alert.currency) ?? .usd)
        do throws(ClientError) {
            var connection = try PriceConnection(path: socket(), timeout: .seconds(2))
            state = try connection.getPrice(in: alert.currency).state
        } catch {
            if case .refused(PriceInterface.unknownCurrency, _) = error {
                throw Failure(message: "\(Alert.notKept(alert.currency)): \(alert.withoutPrice)")
            }
            say("Without a price: \(error).")
        }
        let firing = Firing(
            alert: alert, moment: .seen(now.wall), wasUnconfirmed: false, heldBack: 0, move: nil, state: state,
            time: now.wall)
        let message = "This is a test: \(alert.condition). \(Self.price(of: state))."
        say(message)
        var problems: [String] = []
        if alert.notifies, let problem = firing.notify(on: DesktopNotifications("btc-priced"), message) {
            problems.append("no desktop notification: \(problem)")
        }
        if !alert.command.isEmpty {
            var commands = RunningCommands()
            let delivery = firing.delivery(message, at: now)
            if let problem = commands.start(alert.command, for: delivery, at: now.boottime) { problems.append(problem) }
            while !commands.isEmpty {
                problems += commands.ended(at: ObservationTime.now().boottime).compactMap(\.problem)
                usleep(50_000)
            }
        }
        if !problems.isEmpty { throw Failure(message: problems.joined(separator: "; ")) }
    }

    private static func price(of state: PriceState) -> String {
        guard let price = PriceTexts.money(state) else { return "No price is known" }
        return state.freshness == .fresh ? "The price is \(price)" : "The last price is \(price)"
    }

    private func pause(_ name: String) throws(Failure) {
        let alert = try alert(name)
        if let reason = FileSystem.makeDirectory(paths.paused, mode: 0o755) { throw Failure(message: reason) }
        let path = "\(paths.paused)/\(alert.name)"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw Failure(message: "\(path): \(String(cString: strerror(errno)))") }
        close(descriptor)
        say("\(name) tells of nothing until 'btcctl alert resume \(name)'.")
    }

    private func resume(_ name: String) throws(Failure) {
        let path = "\(paths.paused)/\(try alert(name).name)"
        if unlink(path) == 0 { return say("\(name) is kept again.") }
        guard errno == ENOENT || errno == ENOTDIR else {
            throw Failure(message: "\(path): \(String(cString: strerror(errno)))")
        }
        say("\(name) was not paused.")
    }

    private func remove(_ name: String) throws(Failure) {
        let left = try file { file throws(SettingsError) in try file.remove(name) }
        unlink("\(paths.paused)/\(name)")
        say("\(name) is removed.")
        guard left == 0, control("disable") else { return }
        // One may have been added meanwhile.
        let content = try file { file throws(SettingsError) in try file.content() }
        if content.names.isEmpty { return say("It was the last one: the service is stopped.") }
        startService()
    }

    // MARK: - The unit

    private var start: String { (paths.manager + ["enable", "--now", "btc-price-alert"]).joined(separator: " ") }

    private func startService() {
        if control("enable") { return say("The service is started: \(paths.journal).") }
        say("The service could not be started: run 'systemctl \(start)' where you are logged in.")
    }

    /// Enables or disables the unit, at once.
    private func control(_ verb: String) -> Bool {
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(null) }
        do throws(CommandStart.Failure) {
            let process = try CommandStart.start(
                ["systemctl"] + paths.manager + [verb, "--now", AlertPaths.unit], output: null)
            return CommandEnd(of: process, 0) == .status(0)
        } catch {
            return false
        }
    }
}
