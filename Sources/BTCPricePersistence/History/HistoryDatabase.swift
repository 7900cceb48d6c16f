import BTCPriceCore
import CSQLite

/// The candles on the disk, with one table each for minutes, hours and days. Must be used by one thread at a time.
///
/// Prices are whole numbers of 10^-8, so that every reader gets them exactly.
final class HistoryDatabase {
    /// The decimal places of a stored price.
    static let places = 8
    /// The version of the tables, in `user_version`.
    private static let version: Int64 = 3
    /// The columns of a candle that versions have added, in their order. `covered` is ``Candle/coveredMinutes``, `seconds` is
    /// ``Candle/covered``, or the whole span of an own candle.
    private static let added = ["covered", "doubtful", "seconds", "single"]
    /// The columns of a candle.
    static let columns =
        ["start", "open", "high", "low", "close", "ticks", "fresh", "origin"] + added

    private let database: SQLiteDatabase
    private var statements: [String: SQLiteStatement] = [:]
    /// The spans that have candles of the next shorter step and may have no candle of their own yet.
    private var open: [Candle.Step: Set<Span>] = [.hour: [], .day: []]
    private var lastPruned = Int64.min
    private(set) var currencies: Set<Currency> = []

    private struct Span: Hashable {
        let currency: Currency
        let start: Int64
    }

    /// Opens the file, and creates the tables if needed.
    /// - Parameter now: Unix seconds. Later rows were written while the clock was ahead.
    /// - Throws: ``SQLiteError``. Its ``SQLiteError/isDamage`` is true if the file is not a valid database.
    init(path: String, now: Int64) throws(SQLiteError) {
        database = try SQLiteDatabase(path: path)
        // Before anything is written: a newer version's file stays as it is.
        let version = try version()
        // A power cut may lose the last commits, but never damages the file (sqlite.org, PRAGMA synchronous).
        try database.execute(
            """
            PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-256;
            PRAGMA journal_size_limit=\(Self.longestLog)
            """)
        if version < Self.version { try migrate() }
        try run("SELECT code FROM currency") { row in
            if case .text(let code)? = row.first, let known = Currency(rawValue: code) { self.currencies.insert(known) }
        }
        try findOpen(.hour, in: .minute, at: now)
        try findOpen(.day, in: .hour, at: now)
    }

    /// SQLite's log is cut to this after a checkpoint, bytes.
    private static let longestLog = 1 << 20

    /// Moves the contents of SQLite's log into the file. What another program still reads stays in the log.
    /// - Parameter isLast: Whether the log is also emptied, which waits for other programs.
    func checkpoint(isLast: Bool = false) throws(SQLiteError) {
        try database.execute("PRAGMA wal_checkpoint(\(isLast ? "TRUNCATE" : "PASSIVE"))")
    }

    /// Whether another file is in the place of this one.
    var isReplaced: Bool { database.isReplaced }

    /// Checks a whole file on a connection of its own, which may take minutes.
    /// - Returns: What is wrong with it; `nil` if it is good.
    static func check(path: String) -> SQLiteError? {
        do throws(SQLiteError) {
            var result = ""
            try SQLiteDatabase(path: path, isReadOnly: true).prepare("PRAGMA quick_check(1)").run {
                if case .text(let text)? = $0.first { result = text }
            }
            return result == "ok" ? nil : SQLiteError(code: SQLITE_CORRUPT, description: result)
        } catch {
            return error
        }
    }

    private func version() throws(SQLiteError) -> Int64 {
        let version = try number("PRAGMA user_version") ?? 0
        guard version <= Self.version else {
            throw SQLiteError(code: SQLITE_MISMATCH, description: "it was written by a newer btc-priced")
        }
        return version
    }

    /// Creates what is missing, and changes no row. All of it takes effect, or nothing. A file that was restored from a dump has no version:
    /// what it has is seen in its tables.
    private func migrate() throws(SQLiteError) {
        try database.transaction { () throws(SQLiteError) in
            for step in [Candle.Step.minute, .hour, .day] {
                try database.execute(
                    """
                    CREATE TABLE IF NOT EXISTS \(step) (
                      start INTEGER NOT NULL, currency TEXT NOT NULL,
                      open INTEGER NOT NULL, high INTEGER NOT NULL, low INTEGER NOT NULL, close INTEGER NOT NULL,
                      ticks INTEGER NOT NULL, fresh INTEGER NOT NULL, origin TEXT NOT NULL,
                      PRIMARY KEY (start, currency)
                    ) STRICT, WITHOUT ROWID
                    """)
                let known = try database.columns(of: "\(step)")
                for column in Self.added where !known.contains(column) {
                    try database.execute("ALTER TABLE \(step) ADD COLUMN \(column) INTEGER")
                }
            }
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS currency (code TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS event (
                  start INTEGER NOT NULL, currency TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,
                  end INTEGER, worst INTEGER, count INTEGER NOT NULL,
                  PRIMARY KEY (start, currency, kind, source)
                ) STRICT, WITHOUT ROWID;
                PRAGMA user_version = \(Self.version)
                """)
        }
    }

    /// Ends ``makeIndex()``, with an error. Safe on any thread while the database is open.
    var interrupt: @Sendable () -> Void { database.interrupt }

    /// Makes the index of the minutes by currency, unless it is there. In a large file that takes seconds.
    func makeIndex() throws(SQLiteError) {
        try database.execute("CREATE INDEX IF NOT EXISTS minute_of_currency ON minute (currency, start)")
    }

    // MARK: - Writing

    /// Adds candles of minutes, and makes those of the hours and days that have ended. All of it takes effect, or nothing.
    /// - Parameters:
    ///   - now: Unix seconds. A span that ends later is not complete.
    ///   - oldest: Minutes and episodes before it are deleted, Unix seconds; `nil` to keep all.
    ///   - episodes: Those to write.
    func add(
        _ candles: [KeptCandle], at now: Int64, oldest: Int64?, episodes: [Episode] = []
    ) throws(SQLiteError) {
        try atomically { () throws(SQLiteError) in
            for kept in candles { try add(kept.candle, of: kept.currency, to: .minute, kept.conflict) }
            for kept in candles { note(kept.candle.start, of: kept.currency, in: .hour) }
            try close(.hour, from: .minute, at: now)
            try close(.day, from: .hour, at: now)
            try write(episodes)
            if let oldest { try prune(before: oldest, at: now) }
        }
    }

    /// Makes changes that all take effect, or none.
    private func atomically(_ changes: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        let before = (open, lastPruned, currencies)
        do throws(SQLiteError) {
            try database.transaction(changes)
        } catch {
            (open, lastPruned, currencies) = before
            throw error
        }
    }

    /// Adds an exchange's candles of an hour or a day, for spans that have none.
    /// - Parameter now: Unix seconds.
    func backfill(_ candles: [Candle], of currency: Currency, _ step: Candle.Step, at now: Int64) throws(SQLiteError) {
        try atomically { () throws(SQLiteError) in
            for candle in candles { try add(candle, of: currency, to: step, .completes) }
            // Recomputes the days that were made before these hours were known.
            guard step == .hour else { return }
            for candle in candles { note(candle.start, of: currency, in: .day) }
            try close(.day, from: .hour, at: now)
        }
    }

    /// Marks the daemon's own candles that are later than a moment as in doubt, because they were stored while the clock was ahead.
    /// - Parameter second: The present time, Unix seconds.
    func doubt(after second: Int64) throws(SQLiteError) {
        try database.transaction { () throws(SQLiteError) in
            for step in [Candle.Step.minute, .hour, .day] {
                try run(
                    """
                    UPDATE \(step) SET ticks = max(ticks, 1), fresh = max(fresh, 1), doubtful = max(fresh, 1)
                    WHERE start > ? AND origin = '\(Candle.own)' AND ifnull(doubtful, 0) < max(fresh, 1)
                    """, [.integer(step == .minute ? second : second - step.seconds)])
            }
        }
    }

    /// Adds rows that were read from a damaged file where there are none, and the daemon's own ones where an exchange's are; what knows too
    /// little of its span, beside the exchange's. All of it takes effect, or nothing.
    /// - Returns: The number of rows that are valid candles.
    func add(_ batch: HistorySalvage.Batch) throws(SQLiteError) -> Int {
        var count = 0
        let all = Self.columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        let seen = "('\(Candle.own)', '\(Candle.mixed)')"
        let insertion =
            "INSERT \(Self.row(of: batch.step)) ON CONFLICT DO UPDATE SET \(all) "
            + "WHERE excluded.origin IN \(seen) AND origin NOT IN \(seen)"
        try atomically { () throws(SQLiteError) in
            for row in batch.rows {
                guard case .text(let code) = row[0], let currency = Currency(rawValue: code),
                    let candle = Candle(Array(row.dropFirst()), in: currency, batch.step),
                    candle.start % batch.step.seconds == 0
                else { continue }
                // What is not a number in a column that may be empty is damage, too.
                let values = row.enumerated().map { index, value in
                    index < 9 || value.integer != nil ? value : .null
                }
                count += 1
                let span = candle.start..<candle.start + 1
                if candle.needsCompletion(batch.step),
                    try !candles(of: currency, batch.step, in: span, limit: 1).isEmpty
                {
                    try add(candle, of: currency, to: batch.step, .keepsOwn)
                    continue
                }
                try note(currency)
                try run(insertion, values)
            }
        }
        return count
    }

    /// The damaged files of which all that can be read was added.
    func salvaged() throws(SQLiteError) -> Set<String> {
        var names: Set<String> = []
        try run("SELECT source FROM event WHERE kind = 'salvaged'") { row in
            if case .text(let name)? = row.first { names.insert(name) }
        }
        return names
    }

    /// Records that all that can be read of a damaged file was added.
    /// - Parameters:
    ///   - name: The file's name.
    ///   - second: The present time, Unix seconds.
    func salvaged(_ name: String, rows: Int, at second: Int64) throws(SQLiteError) {
        try run(
            "INSERT OR REPLACE INTO event (start, currency, kind, source, end, count) VALUES (?1, '', 'salvaged', ?2, ?1, ?3)",
            [.integer(second), .text(name), .integer(Int64(rows))])
        // Hours and days that could not be read are made again of what could.
        for (step, part) in [(Candle.Step.hour, Candle.Step.minute), (.day, .hour)] {
            try noteSpans(
                of: step, in: part,
                where: """
                    NOT EXISTS (
                      SELECT 1 FROM \(step) WHERE \(step).currency = \(part).currency
                        AND \(step).start = \(part).start - \(part).start % \(step.seconds))
                    """)
        }
    }

    /// What follows `INSERT`: the currency and ``columns`` are its parameters.
    private static func row(of step: Candle.Step) -> String {
        "INTO \(step) (currency, \(columns.joined(separator: ", "))) VALUES (?\(String(repeating: ",?", count: columns.count)))"
    }

    private func note(_ currency: Currency) throws(SQLiteError) {
        guard currencies.insert(currency).inserted else { return }
        try run("INSERT OR IGNORE INTO currency (code) VALUES (?)", [.text(currency.rawValue)])
    }

    private func note(_ start: Int64, of currency: Currency, in step: Candle.Step) {
        open[step]?.insert(Span(currency: currency, start: step.start(of: start)))
    }

    private func add(
        _ candle: Candle, of currency: Currency, to step: Candle.Step, _ conflict: KeptCandle.Conflict
    ) throws(SQLiteError) {
        try note(currency)
        var candle = candle
        let same = candle.start..<candle.start + 1
        if let known = try candles(of: currency, step, in: same, limit: 1).first {
            guard let merged = KeptCandle(currency, candle, conflict).merged(with: known, step) else { return }
            candle = merged
        }
        let whole = candle.origin == Candle.own ? step.seconds : nil
        try run(
            "INSERT OR REPLACE \(Self.row(of: step))",
            [
                .text(currency.rawValue), .integer(candle.start), try .price(candle.open), try .price(candle.high),
                try .price(candle.low), try .price(candle.close), .integer(candle.ticks), .integer(candle.fresh),
                .text(candle.origin), .optional(candle.coveredMinutes), .optional(candle.doubtful),
                .optional(candle.covered ?? whole), .optional(candle.single),
            ])
    }

    /// Makes the candles of the spans that have ended.
    private func close(_ step: Candle.Step, from part: Candle.Step, at now: Int64) throws(SQLiteError) {
        for span in open[step] ?? [] where span.start + step.seconds <= now {
            try merge(span, step, from: part)
            open[step]?.remove(span)
            if step == .hour {
                open[.day]?.insert(Span(currency: span.currency, start: Candle.Step.day.start(of: span.start)))
            }
        }
    }

    /// Makes a candle from shorter ones.
    ///
    /// An exchange's candle stays until the shorter ones cover all of its span, or are the daemon's own and cover enough of it; if some are
    /// own, it is kept beside them. The daemon's own candle stays if the shorter ones have fewer ticks, since then some of them have been
    /// deleted.
    private func merge(_ span: Span, _ step: Candle.Step, from part: Candle.Step) throws(SQLiteError) {
        let range = span.start..<span.start + step.seconds
        let parts = try candles(of: span.currency, part, in: range, limit: .max)
        guard var whole = Candle(parts, of: part, in: range, at: range.upperBound) else { return }
        if let known = try candles(of: span.currency, step, in: range, limit: 1).first {
            let seconds = { (candle: Candle) in candle.covered ?? step.seconds }
            let isBetter = known.isInDoubt || known.ticks <= whole.ticks && seconds(known) <= seconds(whole)
            let isMore = whole.isPartlyOwn ? whole.isEnough(step) : whole.covered == nil
            guard known.isPartlyOwn ? isBetter : isMore else { return }
            // What they lack is only in the exchange's.
            if !known.isPartlyOwn, whole.origin == Candle.mixed, whole.covered != nil { whole = known.beside(whole) }
        }
        try add(whole, of: span.currency, to: step, .replaces)
    }

    /// Finds the spans that ended while the daemon was not running, and those that have not ended yet.
    private func findOpen(_ step: Candle.Step, in part: Candle.Step, at now: Int64) throws(SQLiteError) {
        for currency in currencies {
            let newest = try number(
                "SELECT start FROM \(step) WHERE start <= ? AND currency = ? ORDER BY start DESC LIMIT 1",
                [.integer(now), .text(currency.rawValue)])
            try noteSpans(
                of: step, in: part, where: "start >= ? AND currency = ?",
                [.integer(newest.map { $0 + step.seconds } ?? 0), .text(currency.rawValue)])
        }
    }

    /// Notes the spans of a step in which shorter candles begin. A candle with an absurd time, which another program may have written, has
    /// none.
    /// - Parameter condition: The condition on the shorter candles, with `values` for its parameters.
    private func noteSpans(
        of step: Candle.Step, in part: Candle.Step, where condition: String, _ values: [SQLiteStatement.Value] = []
    ) throws(SQLiteError) {
        try run(
            """
            SELECT DISTINCT currency, start - start % \(step.seconds) FROM \(part)
            WHERE \(condition) AND start BETWEEN 0 AND \(Timestamp.possibleMilliseconds.upperBound / 1000)
            """, values
        ) { [self] row in
            if case .text(let code) = row[0], let currency = Currency(rawValue: code), let start = row[1].integer {
                open[step]?.insert(Span(currency: currency, start: start))
            }
        }
    }

    /// Deletes the oldest minutes, at most once an hour and about a day of six currencies, so that no commit takes long.
    private func prune(before oldest: Int64, at now: Int64) throws(SQLiteError) {
        guard Candle.Step.hour.start(of: now) != lastPruned else { return }
        lastPruned = Candle.Step.hour.start(of: now)
        try run(
            """
            DELETE FROM minute WHERE start < min(?1, ifnull((SELECT start FROM minute ORDER BY start LIMIT 1 OFFSET 10000), ?1))
            """, [.integer(oldest)])
        try run("DELETE FROM event WHERE start < ?1 AND end < ?1 AND kind <> 'salvaged'", [.integer(oldest)])
    }

    // MARK: - Reading

    /// Candles of a currency, from the oldest to the newest.
    /// - Parameters:
    ///   - range: The range of their starts, Unix seconds.
    ///   - limit: The maximum number of candles.
    func candles(
        of currency: Currency, _ step: Candle.Step, in range: Range<Int64>, limit: Int
    ) throws(SQLiteError) -> [Candle] {
        var candles: [Candle] = []
        var unjudged: Set<Int64> = []
        // A row that is not valid takes the place of none that follows.
        var first = range.lowerBound
        while candles.count < limit {
            let left = limit - candles.count
            var rows = 0
            try run(
                """
                SELECT \(Self.columns.joined(separator: ", ")) FROM \(step)
                WHERE currency = ?3 AND start >= ?1 AND start < ?2 ORDER BY start LIMIT ?4
                """,
                [.integer(first), .integer(range.upperBound), .text(currency.rawValue), .integer(Int64(left))]
            ) { row in
                guard let start = row[0].integer else { return }
                (first, rows) = (start + 1, rows + 1)
                guard let candle = Candle(row, in: currency, step) else { return }
                if step == .minute, candle.origin == Candle.own, row[10] == .null { unjudged.insert(candle.start) }
                candles.append(candle)
            }
            if rows < left { break }
        }
        return unjudged.isEmpty ? candles : try judged(candles, of: currency, unjudged)
    }

    /// Minutes of an earlier version, which did not store how much they cover: one covers too little if it has fewer than five sixths of the
    /// most ticks of a minute of its hour.
    private func judged(
        _ minutes: [Candle], of currency: Currency, _ unjudged: Set<Int64>
    ) throws(SQLiteError) -> [Candle] {
        var most: [Int64: Int64] = [:]
        for hour in Set(unjudged.map(Candle.Step.hour.start)) {
            most[hour] = try number(
                """
                SELECT max(ticks) FROM minute
                WHERE currency = ? AND start >= ? AND start < ? AND origin = '\(Candle.own)' AND seconds IS NULL
                  AND ticks <= \(Candle.mostTicks)
                """, [.text(currency.rawValue), .integer(hour), .integer(hour + Candle.Step.hour.seconds)])
        }
        return minutes.map { minute in
            guard unjudged.contains(minute.start), let most = most[Candle.Step.hour.start(of: minute.start)],
                !Candle.isEnough(minute.fresh, of: most)
            else { return minute }
            var judged = minute
            judged.covered = max(1, Candle.Step.minute.seconds * minute.fresh / most)
            return judged
        }
    }

    /// The newest candle that starts before a moment; `nil` if there is none.
    func newest(of currency: Currency, _ step: Candle.Step, before second: Int64) throws(SQLiteError) -> Candle? {
        var candle: Candle?
        guard currencies.contains(currency) else { return nil }
        try run(
            """
            SELECT \(Self.columns.joined(separator: ", ")) FROM \(step)
            WHERE start < ? AND currency = ? ORDER BY start DESC LIMIT 1
            """, [.integer(second), .text(currency.rawValue)]
        ) { candle = Candle($0, in: currency, step) }
        return candle
    }

    /// Runs a statement, which is prepared on first use.
    func run(
        _ sql: String, _ values: [SQLiteStatement.Value] = [], _ row: ([SQLiteStatement.Value]) -> Void = { _ in }
    ) throws(SQLiteError) {
        let statement: SQLiteStatement
        if let known = statements[sql] {
            statement = known
        } else {
            statement = try database.prepare(sql)
            statements[sql] = statement
        }
        try statement.run(values, row)
    }

    func number(_ sql: String, _ values: [SQLiteStatement.Value] = []) throws(SQLiteError) -> Int64? {
        var number: Int64?
        try run(sql, values) { number = $0.first?.integer }
        return number
    }
}

extension Candle {
    /// - Parameter row: ``HistoryDatabase/columns``.
    /// - Returns: `nil` if the row can't be a candle: an earlier version or another program has written it.
    fileprivate init?(_ row: [SQLiteStatement.Value], in currency: Currency, _ step: Candle.Step) {
        let numbers = row.prefix(7).compactMap(\.integer)
        guard numbers.count == 7, case .text(let origin) = row[7] else { return nil }
        let minutes = row[8].integer.flatMap { (1...Step.day.minutes).contains($0) ? $0 * 60 : nil }
        let covered = row[10].integer ?? minutes
        let price = { (index: Int) in Price(numbers[index], scale: HistoryDatabase.places) }
        self.init(
            checkedStart: numbers[0], open: price(1), high: price(2), low: price(3), close: price(4), ticks: numbers[5],
            fresh: numbers[6], origin: origin,
            covered: covered.flatMap { Self.covered($0, of: step) },
            doubtful: row[9].integer, single: row[11].integer, in: currency)
    }
}

extension SQLiteStatement.Value {
    var integer: Int64? { if case .integer(let number) = self { number } else { nil } }

    static func optional(_ number: Int64?) -> SQLiteStatement.Value { number.map { .integer($0) } ?? .null }

    /// - Throws: ``SQLiteError`` for a price that the column can't hold. It can hold every price within ``Currency/prices``.
    fileprivate static func price(_ price: Price) throws(SQLiteError) -> SQLiteStatement.Value {
        guard let units = price.units(ofPlaces: HistoryDatabase.places) else {
            throw SQLiteError(code: SQLITE_TOOBIG, description: "\(price) is too large for the history")
        }
        return .integer(units)
    }
}
