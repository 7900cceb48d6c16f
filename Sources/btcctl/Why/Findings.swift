import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine
import Glibc

/// What is known about a daemon and its machine, for ``WhyReport``.
struct Findings {
    /// What a daemon has said.
    struct Answers: Equatable {
        var status: StatusMessage
        var sources: [SourceReport] = []
        var currencies: [CurrencyMessage] = []
        /// Those of the last 24 hours.
        var events: [EventMessage] = []
    }

    /// The daemon's systemd unit.
    struct Unit: Equatable {
        static let name = "\(Product.name).service"

        /// Whether the user's manager has it, and not the system's.
        var isUsers: Bool
        /// The properties that were requested; see systemctl(1).
        var properties: [String: String]

        /// What systemctl(1) and journalctl(1) need before the name.
        var manager: [String] { isUsers ? ["--user"] : [] }
        /// `loaded`, `not-found`, `masked` or what is wrong with its files.
        var load: String { properties["LoadState"] ?? "unknown" }
        var isInstalled: Bool { load == "loaded" }
        var state: String { properties["ActiveState"] ?? "unknown" }
        /// Whether the daemon can't respond, although systemd may listen at its socket.
        var isDown: Bool { isInstalled && !["active", "reloading"].contains(state) }
        var restarts: Int { properties["NRestarts"].flatMap { Int($0) } ?? 0 }
    }

    var daemon: Result<Answers, Complaint>
    /// `nil` if there is none, or if it is not known which one it is.
    var unit: Unit?
    /// The last warning or error in the unit's journal; `nil` if there is none, or if this user may not read it.
    var journal: String?
    /// What `btc-priced --diagnose` has found, or why it was not run.
    var program: Result<DiagnosisMessage, ProgramFailure>

    struct ProgramFailure: Error, Equatable {
        let reason: String
    }
}

extension Findings {
    /// The longest waits: for a reply, for those after which no other is requested, for systemctl(1), and for the programs after it.
    /// Together less than six seconds, unless the user wants to wait longer for a reply.
    private static let (reply, replies, system, programs) = (
        Duration.seconds(1), Duration.milliseconds(1500), Duration.milliseconds(700), Duration.milliseconds(2500)
    )

    /// - Parameters:
    ///   - address: The daemon, as the command line names it.
    ///   - configuration: The daemon's configuration file; `nil` for the usual one.
    ///   - signals: The result of ``Signals/catchThem()``.
    init(_ address: DaemonAddress, configuration: String?, signals: Int32) {
        let search = SocketSearch.paths(named: address.socket, environment: Output.environment, uid: getuid())
        let clock = ContinuousClock()
        let begun = clock.now
        var (path, answers) = (String?.none, Answers?.none)
        do throws(Complaint) {
            try Connecting.withDaemon(search, patience: address.timeout ?? Self.reply) {
                connection throws(ClientError) in
                path = connection.path
                answers = Answers(status: try connection.getStatus())
                // What else it says is used if it comes in time. A follower's socket has no such methods.
                func list<Element>(
                    _ call: (inout PriceConnection) throws(ClientError) -> [Element]
                ) throws(ClientError) -> [Element] {
                    guard begun.duration(to: clock.now) < Self.replies else { return [] }
                    return try Connecting.optional { () throws(ClientError) in try call(&connection) } ?? []
                }
                answers?.sources = try list { connection throws(ClientError) in try connection.listSources(nil) }
                answers?.currencies = try list { connection throws(ClientError) in try connection.listCurrencies() }
                answers?.events = try list { connection throws(ClientError) in try connection.events(EventQuery()) }
            }
            daemon = answers.map { .success($0) } ?? .failure(.unreachable([]))
        } catch {
            daemon = answers.map { .success($0) } ?? .failure(error)
        }
        let known = answers == nil ? search.paths : [path].compactMap(\.self)
        unit = Self.unit(of: known, by: clock.now.advanced(by: Self.system), signals)
        let isSystems = answers == nil ? unit?.isUsers == false : known.contains(Product.systemSocket)
        let isUsers = known.contains { path in
            UserDirectory.candidates(environment: Output.environment, uid: getuid()).contains {
                path.hasPrefix("\($0.directory)/")
            }
        }
        let isKnown = configuration != nil || isSystems || isUsers || known.contains(Product.systemSocket)
        program = .failure(
            ProgramFailure(reason: "Name the daemon's configuration file with --config to check it, too."))
        let programs = clock.now.advanced(by: Self.programs)
        if isKnown || answers != nil {
            program = Self.diagnosis(
                configuration ?? (isKnown ? nil : "/dev/null"), of: answers?.status.store, isSystems: isSystems,
                by: programs, signals)
            // Those of a file that is not the daemon's say nothing.
            if !isKnown, case .success(var message) = program {
                message.checks.removeAll { $0.subject == "configuration" }
                program = .success(message)
            }
        }
        if answers == nil, let unit, unit.isInstalled { journal = Self.journal(of: unit, by: programs, signals) }
    }

    // MARK: - The daemon's program

    /// Runs `btc-priced --diagnose`. It connects to nothing: the settings here may lack the proxy that the daemon's unit sets.
    /// - Parameters:
    ///   - store: Where the daemon keeps its files, if it has said so.
    ///   - isSystems: Whether it is the system's daemon.
    private static func diagnosis(
        _ configuration: String?, of store: StatusMessage.Store?, isSystems: Bool,
        by deadline: ContinuousClock.Instant, _ signals: Int32
    ) -> Result<DiagnosisMessage, ProgramFailure> {
        // What this user has set is not the daemon's.
        for name in processEnvironment().keys where name.hasPrefix("BTC_PRICED_") { unsetenv(name) }
        if isSystems {
            setenv("STATE_DIRECTORY", Product.systemState, 1)
            setenv("RUNTIME_DIRECTORY", Product.systemRuntime, 1)
        }
        var words = [CommandStart.path(of: Product.name), "--diagnose", "--offline"]
        if let configuration { words += ["--config", configuration] }
        if let store, !store.stateDirectory.isEmpty {
            words += ["--state-directory", store.stateDirectory, "--runtime-directory", store.runtimeDirectory]
        }
        do throws(CommandStart.Failure) {
            let (output, end) = try RunningProgram(words).output(by: deadline, signals)
            if let json = try? JSONValue(parsing: output[...]), let message = try? DiagnosisMessage(json: json) {
                return .success(message)
            }
            let reason =
                switch end {
                case nil: "takes too long"
                case .status(ExitStatus.usage): "is not known to it: is it older?"
                case .signal(let number): "was ended by signal \(number)"
                case .status(let status): "printed nothing that is understood, and ended with status \(status)"
                }
            return .failure(ProgramFailure(reason: "\(words[0]) --diagnose \(reason)."))
        } catch {
            return .failure(ProgramFailure(reason: "\(words[0]) can't be run: \(error.reason)."))
        }
    }

    // MARK: - systemd

    private static let properties = ["LoadState", "ActiveState", "Result", "NRestarts", "ExecMainStatus"]

    /// The unit of the daemon at a socket, or of one that could be there: rather one that is installed.
    /// - Parameter paths: Of the socket that responded, or of those that were tried.
    private static func unit(of paths: [String], by deadline: ContinuousClock.Instant, _ signals: Int32) -> Unit? {
        let isUsers = paths.contains { $0 != Product.systemSocket && $0.hasPrefix("/run/user/\(getuid())/") }
        let isSystems = paths.contains(Product.systemSocket)
        let units = [isUsers ? true : nil, isSystems ? false : nil].compactMap(\.self).compactMap { isUsers -> Unit? in
            var unit = Unit(isUsers: isUsers, properties: [:])
            let words = ["show", Unit.name, "--property", properties.joined(separator: ",")]
            let ended = try? RunningProgram(["systemctl"] + unit.manager + words).output(by: deadline, signals)
            for line in String(decoding: ended?.output ?? [], as: UTF8.self).split(separator: "\n") {
                unit.properties[String(line.prefix { $0 != "=" })] = String(line.drop { $0 != "=" }.dropFirst())
            }
            return unit.properties.isEmpty ? nil : unit
        }
        return units.first(where: \.isInstalled) ?? units.first
    }

    private static func journal(of unit: Unit, by deadline: ContinuousClock.Instant, _ signals: Int32) -> String? {
        let words = ["--quiet", "--lines", "1", "--priority", "warning", "--output", "cat", "--unit", Unit.name]
        let output = (try? RunningProgram(["journalctl"] + unit.manager + words).output(by: deadline, signals))?.output
        return output.map { String(decoding: $0, as: UTF8.self).split(separator: "\n") }?.last.map {
            String($0).printable
        }
    }
}
