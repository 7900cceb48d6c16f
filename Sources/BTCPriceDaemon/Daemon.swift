import BTCPriceCore
import BTCPriceNetworking
import BTCPriceSocket
import CLinux
import CommandLine
import Configuration
import Glibc
import Logging
import Systemd
import UnixSignals

package enum Daemon {
    /// Exit statuses (sysexits.h).
    enum Exit {
        static let failure: Int32 = 1
        static let configuration: Int32 = 78
    }

    /// Runs the program to its end.
    /// - Parameter arguments: The command line, without the program's name.
    package static func main(arguments: [String], environment: [String: String]) -> Never {
        // Each arena of malloc(3) keeps the memory of its threads' busiest moment. One is enough: most work is on one thread. It gives
        // memory back at 128 KiB; by default this threshold grows with the largest block (mallopt(3)).
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_TRIM_THRESHOLD, 128 * 1024)
        // resolv.conf(5): a lost packet costs 1 s instead of 5 s. A value set by the user is kept.
        setenv("RES_OPTIONS", "timeout:1 attempts:4", 0)
        // If a reader is gone, that of standard error too, a write must fail instead of ending the process.
        signal(SIGPIPE, SIG_IGN)
        let commandLine = DaemonCommandLine.program.readOrExit(arguments) { line throws(UsageError) in
            try DaemonCommandLine(line)
        }
        if case .run = commandLine.action { holdSignals() }
        Task.detached {
            exit(await run(commandLine, environment: environment))
        }
        // Not `await`: the runtime would unblock all signals in this thread while it waits.
        while true { pause() }
    }

    private static func run(_ commandLine: DaemonCommandLine, environment: [String: String]) async -> Int32 {
        if case .printStandardConfiguration = commandLine.action {
            DaemonCommandLine.program.write(SettingKey.standardFile)
            return 0
        }
        if case .diagnose(let mayConnect) = commandLine.action {
            return await diagnose(commandLine, mayConnect: mayConnect, environment)
        }
        let settings: Settings
        do {
            ServerLimits.raiseDescriptors()
            settings = try Settings.read(commandLine: commandLine, environment: environment, uid: getuid())
            for warning in settings.warnings { complain(warning, level: .warning) }
            switch commandLine.action {
            case .checkConfiguration:
                try ExchangeClient.check(settings.clientSettings)
                DaemonCommandLine.program.write("The configuration is good.\n")
                return 0
            case .printConfiguration:
                DaemonCommandLine.program.write(settings.listing)
                return 0
            case .tryExchange(let name, let body):
                return try await ExchangeTrials.run(name, body: body, settings, environment: environment)
                    ? 0 : Exit.failure
            case .reload(let pid):
                try ExchangeClient.check(settings.clientSettings)
                return await reload(pid, settings)
            case .run, .printStandardConfiguration, .diagnose: break
            }
        } catch {
            complain("\(error)")
            return Exit.configuration
        }
        let descriptors = ServerLimits.descriptors
        guard descriptors >= ServerLimits.fewestDescriptors else {
            complain(
                "only \(descriptors) files may be open, and \(ServerLimits.fewestDescriptors) are needed: raise LimitNOFILE= of the unit, or 'ulimit -n'"
            )
            return Exit.failure
        }
        let level = Replaceable(settings.logLevel)
        let logger = logger(level: level, environment: environment)
        let assembly = Assembly(
            settings: settings, environment: environment, logger: logger, level: level,
            readAnew: { () throws(SettingsError) in
                try Settings.read(commandLine: commandLine, environment: environment, uid: getuid())
            })
        do {
            try await assembly.run()
            return 0
        } catch let failure as StartFailure {
            logger.tell(.startFailed, failure.description)
            return failure.isConfiguration ? Exit.configuration : Exit.failure
        } catch {
            logger.tell(.startFailed, "Ended by an error: \(error)")
            return Exit.failure
        }
    }

    private static func diagnose(
        _ commandLine: DaemonCommandLine, mayConnect: Bool, _ environment: [String: String]
    ) async -> Int32 {
        ServerLimits.raiseDescriptors()
        let message = await Diagnosis.run(commandLine, environment: environment, mayConnect: mayConnect)
        DaemonCommandLine.program.write("\(JSON.object(message.json).text)\n")
        return message.checks.allSatisfy(\.isGood) ? 0 : Exit.failure
    }

    private static func reload(_ pid: Int32, _ settings: Settings) async -> Int32 {
        do throws(ReloadRequest.Failure) {
            let unknown = try await ReloadRequest(pid: pid, socket: settings.socketPath).run()
            if let unknown {
                complain(
                    "process \(pid) was signalled, but can't be asked whether it has reloaded: \(unknown)",
                    level: .warning)
            }
            return 0
        } catch {
            complain(error.text(of: pid))
            if case .refused = error { return Exit.configuration }
            return Exit.failure
        }
    }

    /// Blocks the signals that end the daemon, in this thread and those it starts, until the services handle them. A signal
    /// during the start then stops the daemon in order instead of killing it.
    private static func holdSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in Assembly.endingSignals { sigaddset(&signals, number.rawValue) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Writes a line to standard error, before the daemon runs. What it quotes, such as arguments and another user's files, may contain
    /// control characters.
    private static func complain(_ text: String, level: Logger.Level = .error) {
        let journal = getenv("JOURNAL_STREAM").map { ["JOURNAL_STREAM": String(cString: $0)] } ?? [:]
        let logger = Logger(label: Product.name) {
            StandardErrorLogHandler(identifier: $0, environment: journal)
        }
        logger.log(level: level, "\(text.printable)")
    }

    private static func logger(level: Replaceable<Logger.Level>, environment: [String: String]) -> Logger {
        Logger(label: Product.name) {
            AdjustableLogHandler(
                JournalLogHandler.orStandardError(identifier: $0, environment: environment), level: level)
        }
    }
}
