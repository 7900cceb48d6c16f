import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Configuration
import Files
import Glibc
import Logging
import Synchronization
import Systemd

/// What the watch tells the service's thread.
final class AlertNews: Sendable {
    private struct Waiting {
        var news: [PriceWatch.News] = []
        var isStopped = false
    }

    /// The most that waits: if the thread can't take it in, the newest counts.
    private static let most = 1_000

    let signal = EventSignal()
    private let waiting = Mutex(Waiting())

    func put(_ news: PriceWatch.News) {
        waiting.withLock { waiting in
            if waiting.news.count >= Self.most { waiting.news.removeFirst() }
            waiting.news.append(news)
        }
        signal.set()
    }

    func stop() {
        waiting.withLock { $0.isStopped = true }
        signal.set()
    }

    /// - Returns: What has come; `nil` if the service is to stop.
    func take() -> [PriceWatch.News]? {
        signal.clear()
        return waiting.withLock { waiting in
            defer { waiting.news = [] }
            return waiting.isStopped ? nil : waiting.news
        }
    }
}

/// Keeps the alerts: takes in prices, the file and the ends of commands, on one thread, which waits for nothing but the history.
struct AlertService: ~Copyable {
    private enum Bounds {
        static let pass: Int64 = 1_000
        /// How often the ends of commands are looked for.
        static let commands: Int64 = 100
        /// How often the state is saved if nothing happens: when prices were last checked.
        static let save: Int64 = 600_000
        /// How soon the state is saved again after a failure.
        static let saveAgain: Int64 = 10_000
        static let history = Duration.seconds(2)
        /// How long the end of the service waits for the commands that run.
        static let end: Int64 = 5_000
    }

    private let paths: AlertPaths
    private let socket: @Sendable () -> String
    private let news: AlertNews
    private let logger: Logger
    private let manager: ServiceManager
    private let timestamps = TimestampFormatter()

    private var keeper = AlertKeeper()
    private var queue = DeliveryQueue()
    private var commands = RunningCommands()
    private let desktop = DesktopNotifications("btc-priced")
    /// What went wrong with each alert.
    private var problems: [String: String] = [:]
    private var pausedStamp: [Int]?
    /// The stamp of the file that is in force, and of the one that was seen last.
    private var (loaded, sighted): ([Int]?, [Int]?) = (nil, nil)
    private var isGone = false
    private var mustSave = false
    private var savedRevision = 0
    private var nextSave = BootTime.min
    private var lastSave = BootTime.boot
    private var saveFailure: String?
    /// The currencies that the daemon keeps; `nil` before it has said so.
    private var kept: Set<String>?
    /// Those of alerts that it does not keep, as was told.
    private var missing: Set<String> = []

    init(
        _ paths: AlertPaths, socket: @escaping @Sendable () -> String, news: AlertNews, logger: Logger,
        manager: ServiceManager
    ) {
        (self.paths, self.socket, self.news, self.logger, self.manager) = (paths, socket, news, logger, manager)
    }

    /// Runs until ``AlertNews/stop()``.
    mutating func run() {
        start(at: .now())
        var nextPass = ObservationTime.now().boottime
        while let told = news.take() {
            let now = ObservationTime.now()
            for each in told { take(each, at: now) }
            desktop.process()
            for (name, problem) in desktop.takeRefusals() { fail(name, "no desktop notification: \(problem)") }
            if now.boottime >= nextPass {
                nextPass = now.boottime + Bounds.pass
                pass(at: now)
            }
            runCommands(at: now)
            saveIfDue(at: now)
            wait(commands.isEmpty ? min(Bounds.pass, nextPass - now.boottime) : Bounds.commands)
        }
        // What has begun to run is not to run again.
        let end = ObservationTime.now().boottime + Bounds.end
        while !commands.isEmpty, ObservationTime.now().boottime < end {
            let now = ObservationTime.now()
            for (id, problem) in commands.ended(at: now.boottime) { self.end(id, problem, at: now) }
            usleep(useconds_t(Bounds.commands * 1000))
        }
        // What the last command line has removed is not kept.
        if paths.file.stamp != loaded { load(at: .now()) }
        save(at: .now())
    }

    private func wait(_ milliseconds: Int64) {
        var pollers = [news.signal.descriptor, desktop.descriptor].map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        poll(&pollers, nfds_t(pollers.count), Int32(clamping: max(0, milliseconds)))
    }

    // MARK: - Start, file and state

    private mutating func start(at now: ObservationTime) {
        var records = AlertRecords()
        do throws(PriceStoreError) {
            if let bytes = try FileSystem.read(paths.records) {
                do {
                    records = try AlertRecords(json: try JSONValue(parsing: bytes[...]))
                } catch {
                    let aside = FileSystem.setAside(paths.records).map { "; set aside as \($0)" } ?? ""
                    logger.error("\(paths.records) is damaged (\(error))\(aside): all alerts count as new.")
                }
            }
        } catch {
            logger.error("\(error): all alerts count as new.")
        }
        keeper.restore(records)
        for record in records.alerts { problems[record.name] = record.problem }
        for delivery in records.pending { _ = queue.add(delivery, at: now) }
        (loaded, sighted) = (paths.file.stamp, paths.file.stamp)
        readPaused()
        load(at: now)
        manager.ready(status: status)
        logger.info("Ready: \(status), of \(paths.file.path).")
    }

    private var status: String { keeper.alerts.count == 1 ? "1 alert" : "\(keeper.alerts.count) alerts" }

    /// Reads the file. What is wrong in it stays as it was.
    private mutating func load(at now: ObservationTime) {
        do throws(SettingsError) {
            let content = try paths.file.content()
            for mistake in content.mistakes { logger.error("\(mistake)") }
            let right = Dictionary(content.alerts.map { ($0.name, $0) }) { first, _ in first }
            let before = Dictionary(keeper.alerts.map { ($0.name, $0) }) { first, _ in first }
            keeper.set(content.names.compactMap { right[$0] ?? before[$0] }, names: content.names, at: now)
            problems = problems.filter { content.names.contains($0.key) }
            tellOfMissing()
        } catch {
            logger.error("\(error); the alerts stay as they were.")
        }
    }

    private mutating func readFileIfChanged(at now: ObservationTime) {
        let stamp = paths.file.stamp
        // A program may still be writing it.
        defer { sighted = stamp }
        guard stamp != loaded, stamp == sighted else { return }
        loaded = stamp
        load(at: now)
        manager.ready(status: status)
        logger.info("The alerts were read again: \(status).")
    }

    private mutating func readPaused() {
        var directory = stat()
        let stamp = stat(paths.paused, &directory) == 0 ? [directory.st_mtim.tv_sec, directory.st_mtim.tv_nsec] : nil
        guard stamp != pausedStamp else { return }
        pausedStamp = stamp
        keeper.paused = Set(FileSystem.names(in: paths.paused))
    }

    private mutating func saveIfDue(at now: ObservationTime) {
        mustSave = mustSave || keeper.revision != savedRevision
        let isDue = now.boottime >= (mustSave && saveFailure == nil ? lastSave + Bounds.saveAgain / 10 : nextSave)
        if isDue { save(at: now) }
    }

    /// - Parameter sync: Whether it must also outlive a power cut.
    private mutating func save(at now: ObservationTime, sync: Bool = false) {
        lastSave = now.boottime
        var records = AlertRecords()
        (records.alerts, records.seen) = keeper.records(at: now)
        for index in records.alerts.indices { records.alerts[index].problem = problems[records.alerts[index].name] }
        records.pending = queue.pending
        var writer = JSONWriter(.lines)
        records.write(to: &writer)
        do throws(PriceStoreError) {
            try FileSystem.replace(paths.records, with: writer.bytes, sync: sync, mode: paths.modes.file)
            if saveFailure != nil { logger.info("The state is saved again.") }
            (saveFailure, mustSave, savedRevision) = (nil, false, keeper.revision)
            nextSave = now.boottime + Bounds.save
        } catch {
            if saveFailure != "\(error)" {
                logger.error("\(error): until it is saved, a restart may repeat an alert or miss one.")
            }
            saveFailure = "\(error)"
            nextSave = now.boottime + Bounds.saveAgain
        }
    }

    // MARK: - Prices

    private mutating func take(_ news: PriceWatch.News, at now: ObservationTime) {
        switch news {
        case .state(let message, let interval):
            if isGone { logger.info("The daemon is reachable again.") }
            isGone = false
            tell(keeper.see(message.state, interval: interval, at: now), at: now)
        case .kept(let currencies, _):
            kept = Set(currencies)
            tellOfMissing()
        case .gone(let error):
            if !isGone { logger.warning("The daemon can't be reached: \(error).") }
            isGone = true
            keeper.lose()
        }
    }

    /// Tells of the alerts in currencies that the daemon does not keep.
    private mutating func tellOfMissing() {
        guard let kept else { return }
        let absent = Set(keeper.alerts.filter { !$0.rule.isOfTime }.map(\.currency)).subtracting(kept)
        for currency in absent.subtracting(missing).sorted() {
            logger.warning("\(Alert.notKept(currency)): alerts in it do not fire.")
        }
        missing = absent
    }

    private mutating func pass(at now: ObservationTime) {
        readFileIfChanged(at: now)
        readPaused()
        tell(keeper.pass(at: now), at: now)
        while let gap = keeper.nextGap(at: now.boottime) {
            tell(keeper.fill(gap, history(of: gap, at: now), at: now), at: now)
        }
    }

    /// - Returns: The minutes of a gap that are known; `nil` if there is no history.
    private func history(of gap: AlertKeeper.Gap, at now: ObservationTime) -> [Candle]? {
        var candles: [Candle] = []
        do throws(ClientError) {
            var connection = try PriceConnection(path: socket(), timeout: Bounds.history)
            let query = HistoryQuery(
                currency: gap.currency, from: now.wallTime(of: gap.since), to: now.wall, step: .minute, more: true)
            try connection.history(query) { batch, _, _ in candles += batch }
        } catch {
            if case .refused = error { return nil }
        }
        return candles
    }

    // MARK: - Telling

    private mutating func tell(_ firings: [Firing], at now: ObservationTime) {
        guard !firings.isEmpty else { return }
        let told = firings.map { (firing: $0, message: $0.message(timestamps)) }
        for (firing, message) in told {
            keeper.note(message, of: firing.alert.name)
            problems[firing.alert.name] = nil
            if !firing.alert.command.isEmpty, !queue.add(firing.delivery(message, at: now), at: now) {
                fail(firing.alert.name, "the command was not run: too many wait")
            }
        }
        // Before they are told, so that a restart does not tell them as new ones.
        save(at: now, sync: true)
        for (firing, message) in told {
            logger.notice("\(firing.alert.name): \(message)", metadata: firing.metadata)
            if firing.alert.notifies, let problem = firing.notify(on: desktop, message) {
                fail(firing.alert.name, "no desktop notification: \(problem)")
            }
        }
    }

    private mutating func fail(_ name: String, _ problem: String) {
        problems[name] = problem
        mustSave = true
        logger.error("\(name.printable): \(problem)")
    }

    private mutating func runCommands(at now: ObservationTime) {
        if !commands.isEmpty {
            for (id, problem) in commands.ended(at: now.boottime) { end(id, problem, at: now) }
        }
        guard !queue.isEmpty else { return }
        let (start, tooOld) = queue.next(at: now.boottime)
        for delivery in tooOld {
            fail(delivery.alert, "the command was not run in time, and is dropped: \(delivery.id)")
        }
        for delivery in start {
            // One that is paused or removed tells of nothing any more.
            let alert = keeper.paused.contains(delivery.alert) ? nil : keeper.alerts.first { $0.name == delivery.alert }
            guard let command = alert?.command, !command.isEmpty else {
                end(delivery.id, nil, at: now)
                continue
            }
            if let problem = commands.start(command, for: delivery, at: now.boottime) {
                end(delivery.id, problem, at: now)
            }
        }
    }

    private mutating func end(_ id: String, _ problem: String?, at now: ObservationTime) {
        guard let delivery = queue.pending.first(where: { $0.id == id }) else { return }
        let outcome = queue.end(id, isWell: problem == nil, at: now)
        mustSave = true
        switch outcome {
        case .done: problems[delivery.alert] = nil
        case .retry(let wait): fail(delivery.alert, "\(problem ?? ""); it runs again in \(wait / 1000) s")
        case .givenUp: fail(delivery.alert, "\(problem ?? ""); it does not run again")
        }
    }
}

extension Firing {
    fileprivate var metadata: Logger.Metadata { ["alert": "\(alert.name)", "id": "\(id)"] }

    /// - Returns: Why there is none; `nil` if it was sent.
    func notify(on desktop: DesktopNotifications, _ message: String) -> String? {
        desktop.show("Bitcoin: \(alert.name)", message, key: alert.name, isCritical: alert.rule.isOfPrice)
    }

    func delivery(_ message: String, at now: ObservationTime) -> Delivery {
        let model = PriceViewModel()
        model.show(state, at: now)
        let variables =
            state.variables(
                model, previous: move?.from, move?.direction ?? .flat, condition: alert.rule.condition.word, at: now)
            + [
                ("BTCCTL_ALERT", alert.name), ("BTCCTL_ID", id), ("BTCCTL_MESSAGE", message),
            ]
        return Delivery(
            id: id, alert: alert.name,
            variables: variables.map { Delivery.Variable(name: $0.name, value: $0.value) }, fired: time)
    }
}

extension AlertRule.Condition {
    /// The value of `BTCCTL_CONDITION`.
    fileprivate var word: String {
        switch self {
        case .above: "above"
        case .below: "below"
        case .change: "change"
        case .stale: "stale"
        case .unsure: "unsure"
        }
    }
}
