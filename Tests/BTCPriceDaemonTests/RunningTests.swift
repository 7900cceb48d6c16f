import BTCPriceCore
import BTCPriceNetworking
import Configuration
import Logging
import Synchronization
import Systemd
import TestSupport
import Testing

@testable import BTCPriceDaemon

/// Changes while the daemon runs: the configuration, the log level, and a sleep of the machine.
@Suite struct RunningTests {
    @Test func `the clocks show a sleep, and only a sleep`() {
        var detector = SuspendDetector()
        #expect(detector.slept(boottime: .seconds(1000), monotonic: .seconds(900)) == nil, "slept before the start")
        #expect(detector.slept(boottime: .seconds(1001), monotonic: .seconds(901)) == nil)
        #expect(
            detector.slept(boottime: .milliseconds(1_002_400), monotonic: .seconds(902)) == nil,
            "the two were read apart")
        #expect(detector.slept(boottime: .milliseconds(1_063_400), monotonic: .seconds(903)) == .seconds(60))
        #expect(detector.slept(boottime: .milliseconds(1_064_400), monotonic: .seconds(904)) == nil)
    }

    @Test func `the farewell of one sleep does not end the next`() async {
        let (orders, clock, log) = (AsyncStream<Bool>.makeStream(), TestClock(), Log<String>())
        let task = Task {
            await SuspendMonitor.obey(
                orders.stream, suspend: { log.add("suspend") }, wake: { log.add("wake") },
                farewell: { try await clock.sleep(for: .seconds(60)) })
        }
        orders.continuation.yield(true)
        await clock.timer(at: .seconds(60))
        clock.advance(to: .seconds(30))
        orders.continuation.yield(false)
        orders.continuation.yield(true)
        await clock.timer(at: .seconds(90))
        #expect(clock.timers == 1)
        clock.advance(to: .seconds(90))
        while log.all.count < 4 { await Task.yield() }
        #expect(log.all == ["suspend", "wake", "suspend", "wake"])
        orders.continuation.finish()
        await task.value
    }

    private func run(_ services: [any Service]) async throws {
        let logger = Logger(label: "t") { _ in LineLogHandler(log: Log<String>()) }
        try await Services(services: services, executor: nil, logger: logger).run(until: [])
    }

    struct Failing: Service {
        struct Failure: Error {}
        func run() async throws { throw Failure() }
    }

    @Test func `if a service fails, the others end one after the other`() async {
        let log = Log<String>()
        let services: [any Service] = [
            CleanUp { log.add("save") },
            Failing(),
            CleanUp {
                for _ in 0..<1000 { await Task.yield() }
                log.add("last tick")
            },
        ]
        await #expect(throws: Failing.Failure.self) { try await run(services) }
        #expect(log.all == ["last tick", "save"])
    }

    @Test func `work that can't be cancelled does not keep the others from ending`() async {
        let (log, disk) = (Log<String>(), AsyncStream<Void>.makeStream())
        let services: [any Service] = [
            CleanUp { log.add("save") },
            BackgroundService(longestEnd: .milliseconds(1)) {
                await withCheckedContinuation { continuation in
                    Task.detached {
                        for await _ in disk.stream {}
                        continuation.resume()
                    }
                }
            },
            Failing(),
        ]
        await #expect(throws: Failing.Failure.self) { try await run(services) }
        #expect(log.all == ["save"])
        disk.continuation.finish()
    }

    @Test func `the level changes for all loggers at once, and a logger may have a higher one`() {
        let (log, level) = (Log<String>(), Replaceable(Logger.Level.info))
        let handler = LineLogHandler(log: log, logLevel: .trace) {
            "\($0.message) \($0.metadata?["MESSAGE_ID"] ?? "")"
        }
        let logger = Logger(label: "x") { _ in AdjustableLogHandler(handler, level: level) }
        var quiet = logger
        quiet.logLevel = .warning
        logger.info("1")
        logger.debug("2")
        quiet.info("3")
        quiet.warning("4")
        level.value = .debug
        logger.debug("5")
        quiet.info("6")
        level.value = .error
        quiet.warning("7")
        logger.tell(.stale, "8")
        logger.tell(.saveFailed, "9")
        #expect(
            log.all == ["1 ", "4 ", "5 ", "9 \(JournalMessage.saveFailed.rawValue)"])
    }

    @Test func `every kind of message has its own id`() {
        let ids = JournalMessage.allCases.map(\.rawValue)
        #expect(Set(ids).count == ids.count)
        #expect(ids.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
    }

    @Test func `the file of all defaults sets nothing, and each of its lines is valid`() throws {
        let bare = try ConfigurationFile(text: SettingKey.standardFile, path: "c.toml")
        let settings = try Settings(
            Layers(
                commandLine: DaemonCommandLine(), environment: [:], files: ConfigurationFiles(bare, path: "c.toml")),
            environment: [:],
            uid: 0)
        #expect(settings.entries.allSatisfy { $0.origin == .standard })
        let lines = SettingKey.standardFile.split(separator: "\n").map { line in
            line.hasPrefix("# ") || line.hasPrefix("## ") ? "" : line.dropFirst()
        }
        let set = try ConfigurationFile(text: lines.joined(separator: "\n"), path: "c.toml")
        let same = try Settings(
            Layers(
                commandLine: DaemonCommandLine(), environment: [:], files: ConfigurationFiles(set, path: "c.toml")),
            environment: [:],
            uid: 0)
        #expect(same.entries.allSatisfy { $0.origin != .standard })
        #expect(same.first.interval == .seconds(10) && same.sources.map(\.address) == settings.sources.map(\.address))
    }

    @Test func `every setting is an option`() throws {
        for key in SettingKey.all {
            let read = try DaemonCommandLine([key.flag, "x"]).settings
            #expect(read.map(\.key.name) == [key.name] && read.map(\.text) == ["x"])
        }
    }
}
