package import BTCPriceCore
import CSQLite
import Dispatch
import Files
import Synchronization

/// Keeps candles in an SQLite database, on a queue of its own, so that a slow disk delays no tick.
///
/// Candles that can't be written are held in memory until writing works again. The database is checked while it is in use, since
/// reading all of it may take minutes.
package final class HistoryStore: CandleArchive {
    /// The file's name in the state directory.
    package static let fileName = "history.sqlite3"

    /// Settings that can be changed while the store is in use.
    package struct Settings: Sendable, Hashable {
        /// How long minutes are kept; `nil` for no limit.
        package var keepMinutes: Duration?
        /// The minimum time between two commits.
        package var writeEvery: Duration

        package init(keepMinutes: Duration? = .seconds(366 * 86_400), writeEvery: Duration = .seconds(60)) {
            self.keepMinutes = keepMinutes
            self.writeEvery = writeEvery
        }
    }

    package enum Event: Sendable, Hashable {
        /// The history can't be written. Prices are not affected.
        case failed(HistoryError)
        /// The history is written again, with this many candles that were held meanwhile.
        case recovered(candles: Int)
        /// A damaged file was set aside. A new one takes its place.
        case damaged(path: String, reason: String, setAside: String?)
        /// All that can be read of a damaged file is in the new one: this many candles.
        case salvaged(path: String, candles: Int)
        /// A damaged file is not read, since the file system has too little room for its candles: it needs this many bytes.
        case noRoom(path: String, bytes: Int64)
    }

    /// The maximum number of damaged files that are kept.
    private static let mostDamaged = 2

    /// The maximum number of queries on the queue at a time. Others wait.
    static let mostQueries = 4
    /// The maximum number of candles that are held while they can't be written: a day of seven currencies. The oldest are dropped.
    static let mostHeld = 10_080
    /// The time between two checkpoints, milliseconds. Until then, a copy of the file alone lacks what is in SQLite's log.
    private static let checkpointEvery = Duration.seconds(3600).wholeMilliseconds
    /// How much earlier a commit may come, milliseconds, since minutes are not exact.
    private static let tolerance: Int64 = 2000

    private struct State {
        var settings: Settings
        /// The candles that are not written yet, oldest first.
        var held: [KeptCandle] = []
        /// How many of ``held`` are being written.
        var underWay = 0
        /// The episodes that are not written yet.
        var episodes: [EpisodeKey: Episode] = [:]
        var lastCommit: BootTime?
        /// When episodes were written last.
        var lastEpisodes: BootTime?
        var isWriting = false
        var failure: HistoryError?
        var queries = QueryTurns<CheckedContinuation<Bool, Never>>(capacity: HistoryStore.mostQueries)
        var lastQuery = 0
    }

    private struct EpisodeKey: Hashable {
        let subject: Episode.Subject
        let start: Int64
    }

    /// State that only the queue accesses.
    private final class Files {
        var database: HistoryDatabase?
        /// How often a database was opened.
        var opened = 0
        /// The present time, Unix seconds, if later rows have to be marked as in doubt: the last time that failed.
        var unsettled: Int64?
        /// When SQLite's log was last moved into the file; `nil` if the next commit does that.
        var checkpoint: BootTime?
        /// What was written since the check of the database began; `nil` if no check is in progress.
        var unchecked: [KeptCandle]?
        /// Receives the minutes of the last day once the file is open.
        var restored: (@Sendable (Currency, [Candle]) -> Void)?
        /// Returns the minutes that were not passed to the store yet.
        var unstored: (@Sendable (Currency) -> [KeptCandle])?
    }

    private let path: String
    private let clock: HistoryClock
    private var now: ObservationTime { clock.now }
    private let report: @Sendable (Event) -> Void
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "io.btcpriced.history")
    private let checks = DispatchQueue(label: "io.btcpriced.history-check")
    /// Ends the making of the index; `nil` if it is not under way.
    private let indexing = Mutex<(@Sendable () -> Void)?>(nil)
    // Only `queue` uses it.
    private nonisolated(unsafe) let files = Files()

    /// - Parameters:
    ///   - directory: The state directory.
    ///   - clock: The history's time. While it is not confirmed, no minute is deleted.
    ///   - report: Reports to the operator. Called on the queue.
    package init(
        directory: String, settings: Settings, clock: HistoryClock, report: @escaping @Sendable (Event) -> Void
    ) {
        path = "\(directory)/\(Self.fileName)"
        self.clock = clock
        self.report = report
        state = Mutex(State(settings: settings))
    }

    package func change(_ settings: Settings) {
        state.withLock { $0.settings = settings }
    }

    /// Why candles can't be written; `nil` while they can.
    package var failure: HistoryError? { state.withLock(\.failure) }

    /// The number of candles that are not on the disk yet.
    package var held: Int { state.withLock { $0.held.count } }

    /// Opens the database, and reads the minutes of the last day. If that fails, the next commit tries again.
    /// - Parameters:
    ///   - unstored: The minutes that were not passed to the store yet, from the oldest to the newest. Called on the queue.
    ///   - restored: Called on the queue for each currency that has minutes.
    package func open(
        unstored: @escaping @Sendable (Currency) -> [KeptCandle],
        restored: @escaping @Sendable (Currency, [Candle]) -> Void
    ) {
        queue.async { [self] in
            (files.unstored, files.restored) = (unstored, restored)
            do throws(SQLiteError) { _ = try database() } catch { failed(error) }
        }
    }

    // MARK: - Writing

    package func keep(_ candles: [KeptCandle]) {
        let boottime = now.boottime
        let isDue = state.withLock { state in
            state.held += candles
            let excess = state.held.count - Self.mostHeld
            if excess > 0 { state.held.removeSubrange(state.underWay..<min(state.underWay + excess, state.held.count)) }
            let writeEvery = state.settings.writeEvery.wholeMilliseconds - Self.tolerance
            guard !state.isWriting, state.lastCommit.map({ boottime - $0 >= writeEvery }) ?? true else { return false }
            state.isWriting = true
            return true
        }
        if isDue { queue.async { self.commit() } }
    }

    package func note(_ episodes: [Episode]) {
        let boottime = now.boottime
        let isDue = state.withLock { state in
            for episode in episodes {
                let key = EpisodeKey(subject: episode.subject, start: episode.start)
                guard state.episodes.count < Self.mostHeld || state.episodes[key] != nil else { continue }
                state.episodes[key] = episode
            }
            // Usually they are written with the next candle. While there is none, as in an outage, they are as often.
            guard let last = [state.lastCommit, state.lastEpisodes].compactMap(\.self).max() else {
                state.lastEpisodes = boottime
                return false
            }
            let writeEvery = state.settings.writeEvery.wholeMilliseconds + Self.tolerance
            guard !state.isWriting, boottime - last >= writeEvery else { return false }
            state.isWriting = true
            return true
        }
        if isDue { queue.async { self.commit() } }
    }

    /// Runs on the queue.
    private func commit() {
        let present = now
        let (candles, oldest, episodes) = state.withLock { state in
            state.underWay = state.held.count
            if !state.held.isEmpty { state.lastCommit = present.boottime }
            state.lastEpisodes = present.boottime
            let keep = state.settings.keepMinutes.map { $0.components.seconds }
            // Keeps an hour more. Otherwise the oldest minutes that a backfill requests would be deleted and requested again and again.
            let oldest = keep.map { present.wall.wholeSeconds - $0 - Candle.Step.hour.seconds }
            return (state.held, clock.isConfirmed ? oldest : nil, state.episodes)
        }
        do throws(SQLiteError) {
            if !candles.isEmpty || !episodes.isEmpty {
                let database = try database()
                if let second = files.unsettled { try settled(at: second) }
                try database.add(
                    candles, at: present.wall.wholeSeconds, oldest: oldest, episodes: Array(episodes.values))
                files.unchecked?.append(contentsOf: candles)
                if files.checkpoint.map({ present.boottime - $0 >= Self.checkpointEvery }) ?? true {
                    checkpoint(database, at: present)
                }
            }
            let recovered = state.withLock { state in
                state.held.removeFirst(state.underWay)
                (state.underWay, state.isWriting) = (0, false)
                state.episodes = state.episodes.filter { episodes[$0.key] != $0.value }
                defer { state.failure = nil }
                return state.failure != nil
            }
            if recovered { report(.recovered(candles: candles.count)) }
        } catch {
            state.withLock { ($0.underWay, $0.isWriting) = (0, false) }
            failed(error)
        }
    }

    /// Runs on the queue. If it fails, the next one does the same.
    private func checkpoint(_ database: HistoryDatabase, at present: ObservationTime) {
        files.checkpoint = present.boottime
        try? database.checkpoint()
    }

    package func settle(at second: Int64) {
        queue.async { [self] in
            do throws(SQLiteError) { try settled(at: second) } catch { failed(error) }
        }
    }

    /// Runs on the queue.
    private func settled(at second: Int64) throws(SQLiteError) {
        files.unsettled = second
        let database = try database()
        try database.doubt(after: second)
        files.unsettled = nil
        try restore(from: database, at: second)
    }

    package func backfill(_ candles: [Candle], of currency: Currency, _ step: Candle.Step) async throws(HistoryError) {
        try await onQueue(for: nil) { [self] () throws(SQLiteError) in
            let second = now.wall.wholeSeconds
            if step == .minute {
                try database().add(candles.map { KeptCandle(currency, $0, .completes) }, at: second, oldest: nil)
            } else {
                try database().backfill(candles, of: currency, step, at: second)
            }
            // The next commit moves what was filled into the file.
            files.checkpoint = nil
        }
    }

    package func insert(_ minutes: [Candle], of currency: Currency) async throws(HistoryError) {
        try await onQueue(for: nil) { [self] () throws(SQLiteError) in
            try database().backfill(minutes, of: currency, .minute, at: now.wall.wholeSeconds)
        }
    }

    /// Writes the held candles and closes the file.
    package func close() {
        queue.sync { finish() }
    }

    /// The same as ``close()``, but waits for at most this time.
    package func close(within longest: Duration) async {
        await withCheckedContinuation { continuation in
            let waiting = Mutex<CheckedContinuation<Void, Never>?>(continuation)
            let end: @Sendable () -> Void = { waiting.withLock { $0.take() }?.resume() }
            // The next start makes the index.
            indexing.withLock { $0?() }
            queue.async { [self] in
                finish()
                end()
            }
            DispatchQueue.global().asyncAfter(
                deadline: .now() + .milliseconds(Int(longest.wholeMilliseconds)), execute: end)
        }
    }

    /// Runs on the queue.
    private func finish() {
        commit()
        files.database = nil
    }

    /// Waits for all disk work in progress, including a check.
    package func waitForDisk() {
        queue.sync {}
        checks.sync {}
        queue.sync {}
    }

    // MARK: - Reading

    package func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int
    ) async throws(HistoryError) -> [Candle] {
        try await candles(of: currency, step, in: range, limit: limit, for: nil)
    }

    /// Candles of a currency, from the oldest to the newest.
    /// - Parameter user: The user who requests them. Users take turns.
    package func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int, for user: UInt32?
    ) async throws(HistoryError) -> [Candle] {
        try await onQueue(for: user) { [self] () throws(SQLiteError) in
            try candles(of: currency, step, in: range, limit: limit, newest(of: currency), try database())
        }
    }

    /// Episodes, by their start, and the start of the next one if there are more; see ``HistoryDatabase/episodes(in:from:of:limit:)``. The
    /// last ones may not be over yet.
    /// - Parameters:
    ///   - limit: How many are read at a time. Those that began in one second are not parted.
    ///   - user: The user who requests them. Users take turns.
    package func episodes(
        in range: Range<Int64>, from first: Int64?, of currency: Currency? = nil, limit: Int, for user: UInt32?
    ) async throws(HistoryError) -> (episodes: [Episode], next: Int64?) {
        try await onQueue(for: user) { [self] () throws(SQLiteError) in
            let database = try database()
            var found = try episodes(in: range, from: first, of: currency, limit: limit + 1, database)
            guard found.count > limit else { return (found, nil) }
            let next = found[limit].start
            let whole = found.prefix(limit).filter { $0.start < next }
            guard whole.isEmpty else { return (whole, next) }
            found = try episodes(in: next..<next + 1, from: next, of: currency, limit: .max, database)
            return (found, next + 1)
        }
    }

    /// Runs on the queue.
    private func episodes(
        in range: Range<Int64>, from first: Int64?, of currency: Currency?, limit: Int, _ database: HistoryDatabase
    ) throws(SQLiteError) -> [Episode] {
        let newest = state.withLock(\.episodes)
        var known = newest
        for episode in try database.episodes(in: range, from: first, of: currency, limit: limit) {
            let key = EpisodeKey(subject: episode.subject, start: episode.start)
            known[key] = known[key] ?? episode
        }
        return Array(
            known.values.filter { episode in
                range.upperBound > episode.start && episode.start >= first ?? 0
                    && (currency == nil || episode.subject.currency == nil || episode.subject.currency == currency)
                    && (episode.start >= range.lowerBound || episode.end.map { $0 > range.lowerBound } ?? true)
            }
            .sorted { $0.rank < $1.rank }.prefix(limit))
    }

    /// The shortest known candle that covers each of some moments; `nil` where there is none.
    /// - Parameter user: The user who requests them. Users take turns.
    package func candles(
        of currency: Currency, at seconds: [Int64], for user: UInt32?
    ) async throws(HistoryError) -> [(Candle, Candle.Step)?] {
        try await onQueue(for: user) { [self] () throws(SQLiteError) in
            let (newest, database) = (newest(of: currency), try database())
            var found: [(Candle, Candle.Step)?] = []
            for second in seconds { found.append(try candle(of: currency, at: second, newest, database)) }
            return found
        }
    }

    /// Runs on the queue.
    private func candle(
        of currency: Currency, at second: Int64, _ newest: [KeptCandle], _ database: HistoryDatabase
    ) throws(SQLiteError) -> (Candle, Candle.Step)? {
        for step in [Candle.Step.minute, .hour, .day] {
            let start = step.start(of: second)
            let found = try candles(of: currency, step, in: start..<start + 1, limit: 1, newest, database)
            guard let candle = found.first, try knows(second, candle, step, of: currency, newest, database)
            else { continue }
            return (candle, step)
        }
        return nil
    }

    /// Whether a candle has information about a moment within it. Runs on the queue.
    ///
    /// It has none if the daemon made it from prices that are all later, or all earlier, and no exchange's candle completes it.
    private func knows(
        _ second: Int64, _ candle: Candle, _ step: Candle.Step, of currency: Currency, _ newest: [KeptCandle],
        _ database: HistoryDatabase
    ) throws(SQLiteError) -> Bool {
        guard step > .minute, candle.isPartlyOwn, candle.origin == Candle.own || candle.covered != nil else {
            return true
        }
        let shorter: Candle.Step = step == .day ? .hour : .minute
        let span = candle.start..<candle.start + step.seconds
        let parts = try candles(of: currency, shorter, in: span, limit: .max, newest, database)
        // The shorter candles may be missing: minutes are deleted after a time.
        guard let first = parts.first, let last = parts.last else { return true }
        guard second >= first.start, second < last.start + shorter.seconds else { return false }
        for end in [first, last] where (end.start..<end.start + shorter.seconds).contains(second) {
            return try knows(second, end, shorter, of: currency, newest, database)
        }
        return true
    }

    /// The minutes that are not on the disk yet. Runs on the queue, so that no commit comes in between.
    private func newest(of currency: Currency) -> [KeptCandle] {
        // In this order, a minute that ends meanwhile is in both.
        let unstored = files.unstored?(currency) ?? []
        let held = state.withLock { $0.held }.filter { $0.currency == currency }
        let starts = Set(held.map(\.candle.start))
        return held + unstored.filter { !starts.contains($0.candle.start) }
    }

    /// Runs on the queue.
    private func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int, _ newest: [KeptCandle],
        _ database: HistoryDatabase
    ) throws(SQLiteError) -> [Candle] {
        let candles = try database.candles(of: currency, step, in: range, limit: limit)
        let later: [KeptCandle]
        if step == .minute {
            later = newest.filter { range.contains($0.candle.start) }
        } else {
            // The present hour and the present day are not complete, and have no row.
            let shorter: Candle.Step = step == .day ? .hour : .minute
            let last = try database.newest(of: currency, step, before: range.upperBound)
            let start = max(range.lowerBound, last.map { $0.start + step.seconds } ?? range.lowerBound)
            let end = range.upperBound + step.seconds
            guard candles.count < limit, start < range.upperBound else { return candles }
            let parts = try self.candles(of: currency, shorter, in: start..<end, limit: .max, newest, database)
            later = Candle.merged(parts, of: shorter, to: step, at: now.wall.wholeSeconds)
                .filter { range.contains($0.start) }.map { KeptCandle(currency, $0, .keepsOwn) }
        }
        guard !later.isEmpty else { return candles }
        // As they will be stored: what is on the disk may be the same minute.
        var merged = Dictionary(candles.map { ($0.start, $0) }, uniquingKeysWith: { $1 })
        for kept in later {
            let start = kept.candle.start
            merged[start] = merged[start].map { kept.merged(with: $0, step) ?? $0 } ?? kept.candle
        }
        return Array(merged.values.sorted { $0.start < $1.start }.prefix(limit))
    }

    /// Runs a query when its turn has come, unless its task is cancelled before.
    private func onQueue<Result: Sendable>(
        for user: UInt32?, _ body: @escaping @Sendable () throws(SQLiteError) -> Result
    ) async throws(HistoryError) -> Result {
        guard await enter(user) else { throw HistoryError(description: "the query was cancelled") }
        defer { leave() }
        let result: Swift.Result<Result, SQLiteError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                let result = Swift.Result(catching: body)
                if case .failure(let error) = result, error.isDamage { failed(error) }
                continuation.resume(returning: result)
            }
        }
        do throws(SQLiteError) { return try result.get() } catch { throw described(error) }
    }

    /// Waits for a turn.
    /// - Returns: `false` if the task was cancelled before.
    private func enter(_ user: UInt32?) async -> Bool {
        let id = state.withLock { state in
            state.lastQuery += 1
            return state.lastQuery
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mayRun = state.withLock { state in
                    if Task.isCancelled { return Bool?.some(false) }
                    return state.queries.enter(continuation, id: id, of: user) ? true : nil
                }
                if let mayRun { continuation.resume(returning: mayRun) }
            }
        } onCancel: {
            state.withLock { $0.queries.giveUp(id) }?.resume(returning: false)
        }
    }

    private func leave() {
        state.withLock { $0.queries.leave() }?.resume(returning: true)
    }

    // MARK: - The file

    /// The open database. Runs on the queue.
    private func database() throws(SQLiteError) -> HistoryDatabase {
        if let database = files.database {
            if !database.isReplaced { return database }
            // Otherwise its log could be taken for that of the new file. After an error, nothing else can be done.
            try? database.checkpoint(isLast: true)
            files.database = nil
        }
        let database: HistoryDatabase
        let end = now.wall.wholeSeconds
        let hadLog = FileSystem.exists(path + "-wal")
        do throws(SQLiteError) {
            database = try HistoryDatabase(path: path, now: end)
        } catch {
            guard error.isDamage else { throw error }
            setAside(error)
            database = try HistoryDatabase(path: path, now: end)
        }
        // Those of this run are not written yet.
        // If it fails, they go on, and the candles are kept all the same.
        if files.opened == 0 { try? database.endEpisodes(at: end) }
        files.database = database
        files.checkpoint = now.boottime
        files.opened += 1
        files.unchecked = hadLog ? [] : nil
        // After an orderly stop there is no log, and the file need not be read as a whole.
        if hadLog {
            checks.async { [self, number = files.opened] in
                let result = HistoryDatabase.check(path: path)
                queue.async { self.checked(number, result) }
            }
        }
        // If it fails, queries are only slower, and the next start tries again. A damaged file is found by the check.
        queue.async { [self] in
            guard let database = files.database else { return }
            indexing.withLock { $0 = database.interrupt }
            try? database.makeIndex()
            indexing.withLock { $0 = nil }
        }
        queue.async { [self, number = files.opened] in salvage(number) }
        try restore(from: database, at: end)
        return database
    }

    // MARK: - Damage

    /// Reads the damaged files that an earlier run or this one has set aside and not read to their end. Runs on the queue.
    private func salvage(_ number: Int) {
        guard files.opened == number, let database = files.database else { return }
        let asides = FileSystem.damagedFiles(of: path)
        do throws(SQLiteError) {
            let known = asides.isEmpty ? [] : try database.salvaged()
            guard let aside = asides.last(where: { !known.contains(FileSystem.name(of: $0)) }) else { return }
            let size = FileSystem.size(of: aside)
            guard FileSystem.room(for: aside) >= 2 * size else {
                return report(.noRoom(path: aside, bytes: 2 * size))
            }
            // A file that can't be opened is tried again at the next start.
            if let reading = try? HistorySalvage(path: aside) {
                goOn(reading, of: aside, rows: 0, number)
            }
        } catch {
            failed(error)
        }
    }

    /// Adds the next rows. Queries and commits come in between. Runs on the queue.
    private func goOn(_ salvage: HistorySalvage, of aside: String, rows: Int, _ number: Int) {
        guard files.opened == number, let database = files.database else { return }
        nonisolated(unsafe) let salvage = salvage
        do throws(SQLiteError) {
            if let batch = try salvage.next() {
                let rows = rows + (try database.add(batch))
                queue.async { [self] in goOn(salvage, of: aside, rows: rows, number) }
            } else {
                let second = now.wall.wholeSeconds
                try database.salvaged(FileSystem.name(of: aside), rows: rows, at: second)
                report(.salvaged(path: aside, candles: rows))
                try restore(from: database, at: second)
                self.salvage(number)
            }
        } catch {
            // The next start goes on.
            failed(error)
        }
    }

    /// Runs on the queue.
    private func restore(from database: HistoryDatabase, at end: Int64) throws(SQLiteError) {
        for currency in database.currencies {
            let candles = try database.candles(
                of: currency, .minute, in: end - Candle.Step.day.seconds..<end, limit: 1441)
            if !candles.isEmpty { files.restored?(currency, candles) }
        }
    }

    /// Handles the result of a check. What was written to a damaged database meanwhile goes into the new one. Runs on the queue.
    private func checked(_ number: Int, _ result: SQLiteError?) {
        guard files.opened == number, files.database != nil else { return }
        let written = files.unchecked.take() ?? []
        // Any other error is found when the file is used.
        guard let result, result.isDamage else { return }
        setAside(result)
        state.withLock { $0.held.insert(contentsOf: written, at: 0) }
        do throws(SQLiteError) { _ = try self.database() } catch { failed(error) }
    }

    /// Moves a damaged file out of the way, with its log, which another database must not use.
    private func setAside(_ error: SQLiteError) {
        files.database = nil
        let (date, time) = now.wall.utc
        let aside = FileSystem.setAside(path, as: "\(date)T\(time.replaced(":", by: ""))Z")
        // The newest one stays, and of the others the largest: it may be a history of years that is not read yet.
        let others = FileSystem.damagedFiles(of: path).filter { $0 != aside }.sorted {
            FileSystem.size(of: $0) < FileSystem.size(of: $1)
        }
        for old in others.dropLast(Self.mostDamaged - 1) {
            for file in [old, old + "-wal", old + "-shm"] { FileSystem.remove(file) }
        }
        // If somebody opens the damaged file, SQLite finds the log there.
        if let aside { FileSystem.move(path + "-wal", to: aside + "-wal") }
        FileSystem.remove(path + "-shm")
        report(.damaged(path: path, reason: error.description, setAside: aside))
    }

    /// Runs on the queue.
    private func failed(_ error: SQLiteError) {
        if error.isDamage { setAside(error) }
        let described = described(error)
        let isNew = state.withLock { state in
            defer { state.failure = described }
            return state.failure == nil
        }
        if isNew { report(.failed(described)) }
    }

    private func described(_ error: SQLiteError) -> HistoryError {
        HistoryError(description: "\(path): \(error.description)")
    }
}
