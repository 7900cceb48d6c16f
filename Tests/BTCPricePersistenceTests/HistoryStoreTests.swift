import BTCPriceCore
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BTCPricePersistence

extension HistoryStore {
    /// The shortest known candle that covers a moment; `nil` if there is none.
    fileprivate func candle(
        of currency: Currency, at second: Int64
    ) async throws(HistoryError) -> (Candle, Candle.Step)? {
        try await candles(of: currency, at: [second], for: nil)[0]
    }
}

@Suite(.timeLimit(.minutes(3))) struct HistoryStoreTests {
    /// 2024-02-28, 22:00 UTC: the day after the next is a leap day.
    private static let start: Int64 = 1_709_157_600

    private let folder = TemporaryDirectory()
    private let events = Log<HistoryStore.Event>()
    private let clock = Clock()
    private let presents = Present()

    /// The candle of the present minute.
    private final class Present: Sendable {
        private let candle = Mutex<Candle?>(nil)
        func set(_ value: Candle?) { candle.withLock { $0 = value } }
        var value: Candle? { candle.withLock(\.self) }
    }

    private final class Clock: Sendable {
        private let second = Mutex(HistoryStoreTests.start)
        func set(_ value: Int64) { second.withLock { $0 = value } }
        var now: ObservationTime {
            let second = second.withLock(\.self)
            return ObservationTime(wall: Timestamp(milliseconds: second * 1000), boottime: .boot + second * 1000)
        }
    }

    private func store(keep: Duration? = nil) -> HistoryStore {
        let store = HistoryStore(
            directory: folder.path, settings: .init(keepMinutes: keep), clock: .confirmed { [clock] in clock.now },
            report: { [events] in events.add($0) })
        store.open(
            unstored: { [presents] in
                $0 == .usd ? [presents.value].compactMap { $0.map { KeptCandle(.usd, $0, .continues) } } : []
            }, restored: { _, _ in })
        store.waitForDisk()
        return store
    }

    private func candle(_ minute: Int64, _ close: Int64, origin: String = Candle.own) -> Candle {
        Candle(
            start: Self.start + minute * 60, open: Price(close - 1), high: Price(close + 2), low: Price(close - 2),
            close: Price(close), ticks: origin == Candle.own ? 60 : 0, fresh: origin == Candle.own ? 59 : 0,
            origin: origin)
    }

    /// Ends the minute.
    private func keep(
        _ store: HistoryStore, _ minutes: Range<Int64>, conflict: KeptCandle.Conflict = .keepsOwn,
        _ close: (Int64) -> Int64 = { 68_900 + $0 }
    ) {
        for minute in minutes {
            clock.set(Self.start + minute * 60 + 60)
            store.keep([KeptCandle(.usd, candle(minute, close(minute)), conflict)])
            store.waitForDisk()
        }
    }

    private func read(
        _ store: HistoryStore, _ step: Candle.Step, from: Int64 = 0, to: Int64 = .max / 2, limit: Int = .max,
        present: Candle? = nil
    ) async throws -> [Candle] {
        presents.set(present)
        defer { presents.set(nil) }
        return try await store.candles(of: .usd, step, in: from..<to, limit: limit)
    }

    private var path: String { "\(folder.path)/\(HistoryStore.fileName)" }

    @Test func `changed settings apply to what is held, and to old minutes`() async throws {
        let store = store()
        keep(store, 0..<1)
        store.change(.init(writeEvery: .seconds(3600)))
        keep(store, 1..<3)
        #expect(store.held == 2)
        store.change(.init(keepMinutes: .seconds(86_400), writeEvery: .seconds(1)))
        keep(store, 3..<4)
        #expect(store.held == 0)
        keep(store, 3 * 1440..<3 * 1440 + 1)
        #expect(try await read(store, .minute).map(\.start) == [Self.start + 3 * 1440 * 60])
    }

    @Test func `minutes, hours and days are written when they close, over a leap day`() async throws {
        let first = store()
        keep(first, 0..<3 * 1440)
        await first.close(within: .seconds(60))
        // Another process reads the same.
        let second = store()
        #expect(try await read(second, .minute) == (0..<3 * 1440).map { candle($0, 68_900 + $0) })
        let hours = try await read(second, .hour)
        #expect(hours.count == 72)
        #expect((hours[1].open, hours[1].close) == (Price(68_959), Price(69_019)))
        #expect(
            (hours[1].high, hours[1].low, hours[1].ticks, hours[1].fresh) == (Price(69_021), Price(68_958), 3600, 3540))
        let days = try await read(second, .day)
        // 28 February from 22:00, the leap day, 1 March, and 2 March until 22:00, which is not complete.
        #expect(days.map(\.start) == [1_709_078_400, 1_709_164_800, 1_709_251_200, 1_709_337_600])
        #expect(days.map(\.ticks) == [7200, 86_400, 86_400, 22 * 3600])
        let rows = try HistoryDatabase(path: path, now: Self.start)
        #expect(try rows.candles(of: .usd, .day, in: 0..<Int64.max, limit: 9).count == 3, "the last day has no row yet")
        #expect(events.all.isEmpty)
    }

    @Test func `unwritten candles and the present minute are read too`() async throws {
        let store = store()
        keep(store, 0..<2)
        clock.set(Self.start + 121)
        // In the time between two writes.
        store.keep([KeptCandle(.usd, candle(2, 70_000), .keepsOwn)])
        #expect(store.held == 1)
        let present = candle(3, 71_000)
        #expect(
            try await read(store, .minute, present: present).map(\.close)
                == [68_900, 68_901, 70_000, 71_000].map { Price($0) })
        #expect(try await read(store, .minute, limit: 3, present: present).count == 3)
        #expect(
            try await read(store, .minute, from: Self.start + 60, to: Self.start + 180, present: present).count == 2)
        let hour = try #require(try await read(store, .hour, present: present).first)
        #expect((hour.open, hour.close, hour.high) == (Price(68_899), Price(71_000), Price(71_002)))
        #expect(try await read(store, .day, present: present).first?.close == Price(71_000))
        presents.set(present)
        let (found, step) = try #require(try await store.candle(of: .usd, at: Self.start + 200))
        #expect(found == present && step == .minute)
        #expect(try await store.candle(of: .usd, at: Self.start - 86_400) == nil)
        #expect(try await store.candle(of: .eur, at: Self.start) == nil)
    }

    @Test func `a moment between earlier and later prices has no price of its own`() async throws {
        // The daemon has run from 22:10 to 22:20.
        let store = store()
        keep(store, 10..<20)
        #expect(try await store.candle(of: .usd, at: Self.start + 9 * 60) == nil)
        #expect(try await store.candle(of: .usd, at: Self.start - 3600) == nil)
        #expect(try await store.candle(of: .usd, at: Self.start + 10 * 60)?.1 == .minute)
        clock.set(Self.start + 7200)
        #expect(try await store.candle(of: .usd, at: Self.start + 40 * 60) == nil)
        // The daemon runs again from 23:30. The time between has no price.
        keep(store, 90..<100)
        #expect(try await store.candle(of: .usd, at: Self.start + 40 * 60)?.1 == nil)
        #expect(try await store.candle(of: .usd, at: Self.start + 95 * 60)?.1 == .minute)
        // An exchange's candle covers the whole span.
        try await store.backfill([candle(0, 70_000, origin: "kraken")], of: .eur, .hour)
        #expect(try await store.candle(of: .eur, at: Self.start + 9 * 60)?.1 == .hour)
        // A single minute requested by a client does not make an hour.
        try await store.insert([candle(-600, 71_000, origin: "kraken")], of: .usd)
        #expect(try await store.candle(of: .usd, at: Self.start - 36_000)?.0.close == Price(71_000))
        #expect(try await read(store, .hour).allSatisfy { $0.start >= Self.start })
    }

    @Test func `own minutes of the future are in doubt once the time is known, and then replaced`() async throws {
        let store = store()
        // The clock was an hour ahead.
        let hour = (0..<63).map { KeptCandle(.usd, candle($0, 68_900 + $0), .keepsOwn) }
        store.keep(hour + [KeptCandle(.usd, candle(63, 69_000, origin: "kraken"), .yields)])
        store.waitForDisk()
        clock.set(Self.start + 120)
        store.settle(at: Self.start + 120)
        store.waitForDisk()
        let minutes = try await read(store, .minute)
        #expect(minutes.map(\.isInDoubt) == (0...63).map { (3...62).contains($0) }, "nothing is deleted")
        keep(store, 2..<5) { 80_000 + $0 }
        let closes = try await read(store, .minute).prefix(6).map(\.close)
        #expect(closes == [68_900, 68_901, 68_902, 80_003, 80_004, 68_905])
        keep(store, 5..<61) { 80_000 + $0 }
        let made = try #require(try await read(store, .hour).first)
        #expect((made.high, made.isInDoubt) == (80_061, false))
    }

    @Test func `nothing is deleted by a clock that nobody confirms`() async throws {
        let unconfirmed = HistoryStore(
            directory: folder.path, settings: .init(keepMinutes: .seconds(86_400), writeEvery: .zero),
            clock: HistoryClock { [clock] in clock.now }, report: { [events] in events.add($0) })
        unconfirmed.open(unstored: { _ in [] }, restored: { _, _ in })
        keep(unconfirmed, 0..<1)
        clock.set(Self.start + 365 * 86_400)
        keep(unconfirmed, 525_600..<525_602)
        #expect(try await read(unconfirmed, .minute).count == 3)
    }

    @Test(arguments: [
        (KeptCandle.Conflict.keepsOwn, Candle.own, [100, 100], Candle.own),
        (.keepsOwn, "kraken", [200, 200], Candle.own), (.replaces, Candle.own, [200, 200], Candle.own),
        (.continues, Candle.own, [100, 200], Candle.own), (.continues, "kraken", [200, 200], Candle.own),
        (.completes, Candle.own, [100, 100], Candle.own), (.completes, "kraken", [100, 100], "kraken"),
    ])
    func `a backfill of an existing minute`(
        conflict: KeptCandle.Conflict, origin: String, expected: [Int64], shown: String
    ) async throws {
        let store = store()
        let part = { (close: Int64, origin: String) in
            var part = candle(0, close, origin: origin)
            if conflict == .continues, origin == Candle.own { part.covered = 20 }
            return part
        }
        store.keep([KeptCandle(.usd, part(100, origin), .keepsOwn)])
        store.waitForDisk()
        clock.set(Self.start + 60)
        let new = origin == Candle.own ? part(200, Candle.own) : candle(0, 200)
        store.keep([KeptCandle(.usd, conflict == .completes ? candle(0, 200, origin: "coinbase") : new, conflict)])
        store.waitForDisk()
        let found = try #require(try await read(store, .minute).first)
        #expect((found.open, found.close) == (Price(expected[0] - 1), Price(expected[1])))
        #expect(found.origin == shown)
        if conflict == .continues, origin == Candle.own {
            #expect((found.high, found.low, found.ticks) == (202, 98, 120))
            clock.set(Self.start + 120)
            store.keep([KeptCandle(.usd, part(50, Candle.own), conflict)])
            store.waitForDisk()
            let later = try #require(try await read(store, .minute).first)
            #expect((later.high, later.low, later.close) == (202, 48, 50))
        }
    }

    @Test func `minutes replace an exchange's hour only if they are nearly complete`() async throws {
        let store = store()
        let exchange = Candle(start: Self.start, open: 1, high: 9, low: 1, close: 5, origin: "kraken")
        let next = Candle(start: Self.start + 3600, open: 1, high: 9, low: 1, close: 5, origin: "kraken")
        try await store.backfill([exchange, next], of: .usd, .hour)
        keep(store, 50..<60)
        keep(store, 60..<121)
        let hours = try await read(store, .hour)
        #expect(hours.map(\.origin).prefix(2) == ["kraken", Candle.own])
        // A second backfill changes nothing.
        try await store.backfill(
            [exchange, next].map {
                var other = $0
                other.close = 7
                other.origin = "coinbase"
                return other
            }, of: .usd, .hour)
        #expect(try await read(store, .hour) == hours)
    }

    @Test func `an exchange's minutes make an hour only if they are nearly complete, and its hours a day`() async throws
    {
        let store = store()
        clock.set(Self.start + 86_400)
        func backfill(_ minutes: Range<Int64>) async throws {
            try await store.backfill(minutes.map { candle($0, 100, origin: "kraken") }, of: .usd, .minute)
        }
        try await backfill(0..<50)
        try await backfill(60..<109)
        #expect(try await read(store, .hour).map(\.start) == [Self.start])
        #expect(try await read(store, .hour).map(\.coveredMinutes) == [50])
        #expect(try await store.candle(of: .usd, at: Self.start + 3600 + 3000) == nil)
        #expect(try await read(store, .day).isEmpty)
        // A minute that a client has requested makes neither, also after the next start.
        try await store.insert([candle(-600, 71_000, origin: "kraken")], of: .usd)
        await store.close(within: .seconds(60))
        let later = self.store()
        #expect(try await read(later, .hour).count == 1)
        #expect(try await later.candle(of: .usd, at: Self.start - 36_000)?.1 == .minute)
        #expect(try await later.candle(of: .usd, at: Self.start - 36_000 + 60) == nil)
        // What the daemon itself has seen is shown as a part.
        try await later.backfill([candle(130, 100, origin: "kraken")], of: .usd, .minute)
        keep(later, 140..<160)
        clock.set(Self.start + 4 * 3600)
        keep(later, 240..<241)
        let own = try #require(try await read(later, .hour).first { $0.start == Self.start + 7200 })
        #expect((own.coveredMinutes, own.origin, own.open) == (20, Candle.own, Price(69_039)))
    }

    @Test func `prices in doubt are left out of an hour, and counted`() async throws {
        let store = store()
        clock.set(Self.start + 3600)
        var minutes = (0..<60).map { candle($0, 100) }
        for minute in 0..<60 { minutes[minute].doubtful = 0 }
        minutes[7] = candle(7, 200)
        minutes[7].doubtful = 59
        minutes[59].covered = 30
        store.keep(minutes.map { KeptCandle(.usd, $0, .keepsOwn) })
        store.waitForDisk()
        #expect(try await read(store, .minute) == minutes)
        let hour = try #require(try await read(store, .hour).first)
        #expect((hour.high, hour.doubtful, hour.coveredMinutes) == (102, 59, 59))
        // The daemon is started again within the last minute, in doubt.
        var later = candle(59, 300)
        (later.doubtful, later.covered) = (59, 20)
        store.keep([KeptCandle(.usd, later, .continues)])
        clock.set(Self.start + 3700)
        store.keep([])
        store.waitForDisk()
        let last = try #require(try await read(store, .minute).last)
        #expect((last.high, last.fresh, last.doubtful) == (102, 118, 59))
    }

    @Test func `a file of the first version is kept, and its rows say nothing of doubt`() async throws {
        let database = try SQLiteDatabase(path: path)
        for step in ["minute", "hour", "day"] {
            try database.execute(
                """
                CREATE TABLE \(step) (
                  start INTEGER NOT NULL, currency TEXT NOT NULL,
                  open INTEGER NOT NULL, high INTEGER NOT NULL, low INTEGER NOT NULL, close INTEGER NOT NULL,
                  ticks INTEGER NOT NULL, fresh INTEGER NOT NULL, origin TEXT NOT NULL,
                  PRIMARY KEY (start, currency)
                ) STRICT, WITHOUT ROWID
                """)
        }
        try database.execute(
            """
            CREATE TABLE currency (code TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
            INSERT INTO currency VALUES ('USD');
            INSERT INTO minute VALUES (\(Self.start), 'USD', 6889900000000, 6890200000000, 6889800000000, 6890000000000, 60, 59, 'own');
            PRAGMA user_version = 1
            """)
        for _ in 0..<2 {
            let store = store()
            #expect(try await read(store, .minute) == [candle(0, 68_900)])
            await store.close(within: .seconds(60))
        }
        var (version, plan) = (SQLiteStatement.Value.null, "")
        try database.prepare("PRAGMA user_version").run { version = $0[0] }
        #expect(version == .integer(3))
        // A currency without rows costs no scan.
        let query =
            "SELECT start FROM minute WHERE currency = 'EUR' AND start >= 0 AND start < 9 ORDER BY start LIMIT 1"
        // A plan is made with the tables as the connection knows them.
        let anew = try SQLiteDatabase(path: path)
        try anew.prepare("EXPLAIN QUERY PLAN \(query)").run { if case .text(let text)? = $0.last { plan += text } }
        #expect(plan.contains("minute_of_currency"))
        #expect(events.all.isEmpty)
    }

    @Test(arguments: [1, 2, 3])
    func `a file that was restored from a dump has no version, and is used`(version: Int) async throws {
        let first = store()
        keep(first, 0..<3)
        await first.close(within: .seconds(60))
        let database = try SQLiteDatabase(path: path)
        for column in [[], ["seconds", "single"], ["covered", "doubtful", "seconds", "single"]][3 - version] {
            for step in ["minute", "hour", "day"] { try database.execute("ALTER TABLE \(step) DROP COLUMN \(column)") }
        }
        try database.execute("PRAGMA user_version = 0")
        let second = store()
        keep(second, 3..<4)
        #expect(try await read(second, .minute).map(\.close) == [68_900, 68_901, 68_902, 68_903])
        #expect(events.all.isEmpty)
    }

    @Test func `minutes of version 2 cover too little if they have few of the ticks of their hour`() async throws {
        let first = store()
        keep(first, 0..<3)
        await first.close(within: .seconds(60))
        let database = try SQLiteDatabase(path: path)
        try database.execute("UPDATE minute SET seconds = NULL, fresh = 20 WHERE start = \(Self.start + 60)")
        try database.execute("UPDATE minute SET seconds = NULL, ticks = 3, fresh = 3 WHERE start = \(Self.start)")
        let second = store()
        #expect(try await read(second, .minute).map(\.covered) == [3, 20, nil])
        // An exchange's candle completes it, and a client's request for it does, too.
        try await second.backfill([candle(0, 69_500, origin: "kraken")], of: .usd, .minute)
        try await second.insert([candle(1, 69_600, origin: "kraken")], of: .usd)
        let minutes = try await read(second, .minute)
        #expect(minutes.map(\.covered) == [nil, nil, nil])
        #expect(minutes.map(\.origin) == [Candle.mixed, Candle.mixed, Candle.own])
        #expect(minutes.map(\.ticks) == [3, 60, 60] && minutes.map(\.high) == [69_502, 69_602, 68_904])
    }

    @Test func `a copy of the file alone has what was fetched, and the log does not grow`() async throws {
        let store = store()
        try await store.backfill((0..<1000).map { candle($0, 100, origin: "kraken") }, of: .usd, .minute)
        keep(store, 1000..<1001)
        let copy = path + ".copy"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        var count: Int64?
        try SQLiteDatabase(path: copy).prepare("SELECT count(*) FROM minute").run { row in
            if case .integer(let number)? = row.first { count = number }
        }
        #expect(count == 1001)
        #expect(events.all.isEmpty)
    }

    @Test func `old minutes are deleted, hours and days never`() async throws {
        let store = store(keep: .seconds(86_400))
        keep(store, 0..<2 * 1440 + 60)
        let minutes = try await read(store, .minute)
        #expect((24 * 60...25 * 60 + 1).contains(minutes.count), "\(minutes.count)")
        #expect(try await read(store, .hour).count == 49)
    }

    @Test func `hours that ended while the daemon was away are made at the next start`() async throws {
        let first = store()
        keep(first, 0..<90)
        await first.close(within: .seconds(60))
        let second = store()
        keep(second, 300..<301)
        let rows = try HistoryDatabase(path: path, now: Self.start)
        #expect(try rows.candles(of: .usd, .hour, in: 0..<Int64.max, limit: 9).map(\.ticks) == [3600, 1800])
    }

    @Test func `rows from a clock that was ahead do not hide hours that ended while the daemon was away`() async throws
    {
        let first = store()
        keep(first, 0..<90)
        // The clock is ten years ahead for an hour, and then correct again.
        keep(first, 5_256_000..<5_256_070)
        clock.set(Self.start + 90 * 60)
        await first.close(within: .seconds(60))
        let second = store()
        keep(second, 300..<301)
        let now = Self.start + 301 * 60
        let rows = try HistoryDatabase(path: path, now: now)
        #expect(try rows.candles(of: .usd, .hour, in: 0..<now, limit: 9).map(\.ticks) == [3600, 1800])
    }

    private func exchanges(_ hours: Range<Int64>, _ close: Int64) -> [Candle] {
        hours.map {
            Candle(
                start: Self.start + $0 * 3600, open: Price(close), high: Price(close), low: Price(close),
                close: Price(close), origin: "kraken")
        }
    }

    @Test func `a day that was made before its hours were known is made again`() async throws {
        let store = store()
        // The daemon's own prices until 04:00 on the day before the leap day, then three days without prices, as after a sleep.
        keep(store, 0..<360)
        keep(store, 4 * 1440..<4 * 1440 + 2)
        let day: Int64 = 1_709_164_800
        let before = try #require(try await read(store, .day).first { $0.start == day })
        #expect((before.ticks, before.origin) == (4 * 3600, Candle.own))
        try await store.backfill(exchanges(0..<96, 70_000), of: .usd, .hour)
        let after = try #require(try await read(store, .day).first { $0.start == day })
        #expect((after.close, after.high, after.origin) == (Price(70_000), Price(70_000), Candle.mixed))
        #expect(after.open == before.open)
        #expect(try await read(store, .day).first { $0.start == day + 86_400 }?.close == Price(70_000))
    }

    @Test func `an exchange's day stays until all of its hours are known`() async throws {
        let store = store()
        let day: Int64 = 1_709_164_800
        clock.set(day + 2 * 86_400)
        let known = Candle(start: day, open: 60_000, high: 75_000, low: 60_000, close: 70_000, origin: "kraken")
        try await store.backfill([known], of: .usd, .day)
        let first = (day - Self.start) / 3600
        try await store.backfill(exchanges(first + 2..<first + 24, 70_000), of: .usd, .hour)
        #expect(try await read(store, .day) == [known])
        try await store.backfill(exchanges(first..<first + 2, 65_000), of: .usd, .hour)
        let days = try await read(store, .day)
        #expect(days.map(\.open) == [65_000])
        #expect(days.map(\.covered) == [nil])
    }

    @Test func `what only an exchange's hour knows stays beside minutes that cover most of it`() async throws {
        let store = store()
        let hour = Candle(
            start: Self.start, open: 69_000, high: 75_000, low: 60_000, close: 69_000, origin: "kraken")
        try await store.backfill([hour], of: .usd, .hour)
        keep(store, 0..<21)
        clock.set(Self.start + 3660)
        try await store.backfill((25..<60).map { candle($0, 69_000, origin: "kraken") }, of: .usd, .minute)
        let known = try #require(try await read(store, .hour).first)
        #expect((known.low, known.high, known.origin, known.covered) == (60_000, 75_000, Candle.mixed, nil))
        #expect(known.ticks == 21 * 60)
    }

    @Test func `an hour that an exchange has completed knows all of its moments`() async throws {
        let store = store()
        keep(store, 10..<20)
        keep(store, 3 * 1440..<3 * 1440 + 1)
        #expect(try await store.candle(of: .usd, at: Self.start + 2400) == nil)
        let hour = Candle(
            start: Self.start, open: 69_000, high: 75_000, low: 60_000, close: 69_000, origin: "kraken")
        try await store.backfill([hour], of: .usd, .hour)
        let (found, step) = try #require(try await store.candle(of: .usd, at: Self.start + 2400))
        #expect((found.origin, step) == (Candle.mixed, .hour))
    }

    @Test func `an hour with a minute of an exchange is completed, too`() async throws {
        let store = store()
        keep(store, 0..<10)
        var part = candle(10, 69_000)
        part.covered = 20
        store.keep([KeptCandle(.usd, part, .keepsOwn)])
        keep(store, 70..<71)
        try await store.backfill([candle(10, 69_000, origin: "kraken")], of: .usd, .minute)
        #expect(try await read(store, .hour).first?.covered == 660)
        let hour = Candle(
            start: Self.start, open: 69_000, high: 75_000, low: 60_000, close: 69_000, origin: "kraken")
        try await store.backfill([hour], of: .usd, .hour)
        let known = try #require(try await read(store, .hour).first)
        #expect((known.covered, known.low, known.ticks) == (nil, 60_000, 11 * 60))
    }

    @Test func `a row that is not valid takes the place of no other`() async throws {
        let store = store()
        keep(store, 0..<6)
        let other = try SQLiteDatabase(path: path)
        try other.execute("UPDATE minute SET low = high * 2 WHERE start IN (\(Self.start + 60), \(Self.start + 120))")
        let found = try await read(store, .minute, limit: 3)
        #expect(found.map { ($0.start - Self.start) / 60 } == [0, 3, 4])
        #expect(try await read(store, .minute).count == 4)
    }

    @Test func `what a damaged file knows of a part of a minute is kept beside an exchange's minute`() throws {
        let database = try HistoryDatabase(path: path, now: Self.start)
        let exchange = Candle(
            start: Self.start, open: 69_000, high: 75_000, low: 60_000, close: 69_000, origin: "kraken")
        try database.backfill([exchange], of: .usd, .minute, at: Self.start + 60)
        let price = SQLiteStatement.Value.integer(70_000 * 100_000_000)
        let row: [SQLiteStatement.Value] = [
            .text("USD"), .integer(Self.start), price, price, price, price, .integer(10), .integer(10),
            .text(Candle.own),
            .null, .integer(0), .integer(10), .integer(0),
        ]
        #expect(try database.add(HistorySalvage.Batch(step: .minute, rows: [row])) == 1)
        let known = try #require(try database.candles(of: .usd, .minute, in: 0..<Int64.max, limit: 9).first)
        #expect((known.low, known.high, known.origin, known.ticks) == (60_000, 75_000, Candle.mixed, 10))
    }

    @Test func `an hour whose minutes are deleted stays, even if its last minute is filled later`() async throws {
        let store = store(keep: .seconds(86_400))
        keep(store, 0..<27 * 60)
        let hours = try await read(store, .hour)
        let minute = candle(119, 50_000, origin: "coinbase")
        try await store.backfill([minute], of: .usd, .minute)
        keep(store, 27 * 60..<27 * 60 + 2)
        #expect(try await read(store, .hour).prefix(27) == hours.prefix(27))
    }

    @Test func `a held candle is shown between newer rows`() async throws {
        let store = store()
        keep(store, 0..<1)
        clock.set(Self.start + 65)
        for minute in 1..<4 { store.keep([KeptCandle(.usd, candle(Int64(minute), 70_000), .keepsOwn)]) }
        try await store.backfill([candle(4, 60_000, origin: "kraken")], of: .usd, .minute)
        #expect(
            try await read(store, .minute).map(\.close) == [68_900, 70_000, 70_000, 70_000, 60_000].map { Price($0) })
        #expect(try await read(store, .minute, limit: 3).count == 3)
        // For a moment the present minute and the held one are the same.
        #expect(try await read(store, .minute, present: candle(3, 70_000)).map(\.ticks) == [60, 60, 60, 60, 0])
    }

    @Test func `a state directory may be a symbolic link`() async throws {
        let link = TemporaryDirectory()
        try #require(symlink(folder.path, "\(link.path)/link") == 0)
        let store = HistoryStore(
            directory: "\(link.path)/link", settings: .init(), clock: .confirmed { [clock] in clock.now },
            report: { [events] in events.add($0) })
        keep(store, 0..<2)
        #expect(store.failure == nil)
    }

    @Test func `another database in the place of the file is used as it is`() async throws {
        let first = store()
        keep(first, 0..<300)
        await first.close(within: .seconds(60))
        try FileManager.default.copyItem(atPath: path, toPath: path + ".backup")
        let second = store()
        keep(second, 300..<400)
        try #require(rename(path + ".backup", path) == 0)
        keep(second, 400..<402)
        #expect(try await read(second, .minute).count == 302)
        #expect(events.all.isEmpty, "\(events.all)")
    }

    @Test(arguments: ["rubbish", "SQLite format 3\0 and then rubbish", ""])
    func `a file that is not a database is set aside, and a new one is created`(content: String) async throws {
        try Data((content + String(repeating: "x", count: content.isEmpty ? 0 : 5000)).utf8).write(
            to: URL(filePath: path))
        try Data("old log".utf8).write(to: URL(filePath: path + "-wal"))
        let store = store()
        keep(store, 0..<2)
        #expect(try await read(store, .minute).count == 2)
        if content.isEmpty {
            // For SQLite an empty file is a new database.
            #expect(events.all.isEmpty)
        } else {
            guard case .damaged(path, _, let aside?)? = events.all.first else {
                Issue.record("\(events.all)")
                return
            }
            #expect(aside.hasPrefix("\(path).corrupt-2") && access(aside, F_OK) == 0)
            #expect(try await salvaged(store) == 0)
        }
    }

    /// A file with 500 minutes and a damaged page.
    private func makeDamaged() async throws {
        let store = store()
        keep(store, 0..<500)
        await store.close(within: .seconds(60))
        var bytes = try Data(contentsOf: URL(filePath: path))
        for place in 8192..<12_288 { bytes[place] = 0x5A }
        try bytes.write(to: URL(filePath: path))
    }

    @Test func `candles written before damage is found are not lost`() async throws {
        try await makeDamaged()
        try Data().write(to: URL(filePath: path + "-wal"))
        let second = HistoryStore(
            directory: folder.path, settings: .init(), clock: .confirmed { [clock] in clock.now },
            report: { [events] in events.add($0) })
        second.open(unstored: { _ in [] }, restored: { _, _ in })
        // The check of the file is still running. It is made because there is a log.
        second.keep([KeptCandle(.usd, candle(500, 69_400), .keepsOwn)])
        second.waitForDisk()
        keep(second, 501..<502)
        #expect(try await read(second, .minute).suffix(2).map(\.close) == [69_400, 69_401])
        _ = try await salvaged(second)
        #expect(events.all.count == 2)
        await second.close(within: .seconds(60))
    }

    /// Waits until a damaged file was read to its end.
    /// - Returns: The number of candles that were saved.
    private func salvaged(_ store: HistoryStore) async throws -> Int {
        for _ in 0..<10_000 {
            store.waitForDisk()
            for case .salvaged(_, let candles) in events.all { return candles }
            await Task.yield()
        }
        throw Salvage.isMissing
    }

    private enum Salvage: Error { case isMissing }

    @Test func `what can be read of a damaged file is saved into the new one`() async throws {
        let store = store()
        store.keep((0..<6000).map { KeptCandle(.usd, candle($0, 60_000 + $0), .keepsOwn) })
        store.keep((0..<3000).map { KeptCandle(.chf, candle($0, 50_000), .keepsOwn) })
        clock.set(Self.start + 6000 * 60)
        keep(store, 6000..<6001)
        await store.close(within: .seconds(60))
        var bytes = try Data(contentsOf: URL(filePath: path))
        let middle = bytes.count / 2 / 4096 * 4096
        for place in middle..<middle + 4 * 4096 { bytes[place] = 0x5A }
        try bytes.write(to: URL(filePath: path))
        let second = self.store()
        // Whoever meets the damage first fails: the first query, or already the start.
        _ = try? await read(second, .minute)
        keep(second, 6001..<6002) { _ in 70_000 }
        let saved = try await salvaged(second)
        #expect((8000..<9200).contains(saved), "\(saved) \(events.all)")
        let minutes = try await read(second, .minute)
        #expect(minutes.first?.close == 60_000 && minutes.suffix(2).map(\.close) == [74_900, 70_000])
        #expect(minutes.count < 6001 && minutes.count > 5000, "\(minutes.count)")
        #expect(try await read(second, .hour).count > 90)
        await second.close(within: .seconds(60))
        // It is not read again.
        let third = self.store()
        #expect(try await read(third, .minute).count == minutes.count)
        #expect(events.all.count { if case .salvaged = $0 { true } else { false } } == 1, "\(events.all)")
    }

    @Test(arguments: [Int64.max, .min])
    func `a row with an absurd time beside a damaged file does not stop the store`(start: Int64) async throws {
        let first = store()
        keep(first, 0..<61)
        await first.close(within: .seconds(60))
        try FileManager.default.copyItem(atPath: path, toPath: path + ".corrupt")
        let database = try SQLiteDatabase(path: path)
        for step in ["minute", "hour"] {
            try database.execute("INSERT INTO \(step) VALUES (\(start),'USD',1,1,1,1,1,1,'own',NULL,NULL,NULL,NULL)")
        }
        let second = store()
        _ = try await salvaged(second)
        keep(second, 61..<122)
        #expect(second.failure == nil && second.held == 0)
        #expect(try await read(second, .minute).count == 122)
    }

    @Test func `a damaged file of an earlier run is read, if there is room, and two are kept`() async throws {
        let first = store()
        keep(first, 0..<130)
        await first.close(within: .seconds(60))
        // The run ended in the middle, or was one of version 1.0.0.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".corrupt")
        let second = store()
        let saved = try await salvaged(second)
        #expect(saved == 133, "\(events.all)")
        #expect(try await read(second, .minute).count == 130)
        await second.close(within: .seconds(60))
        for _ in 0..<3 {
            clock.set(clock.now.wall.wholeSeconds + 1)
            try Data(repeating: 0x5A, count: 5000).write(to: URL(filePath: path))
            let next = store()
            keep(next, 500..<501)
            await next.close(within: .seconds(60))
        }
        let asides = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasSuffix("corrupt") || $0.hasSuffix("Z")
        }
        #expect(asides.count == 2, "\(asides)")
        let huge = open(path + ".corrupt-9Z", O_CREAT | O_WRONLY, 0o600)
        try #require(ftruncate(huge, 1 << 43) == 0)
        close(huge)
        let last = store()
        for _ in 0..<1000 where events.all.last != .noRoom(path: path + ".corrupt-9Z", bytes: 1 << 44) {
            last.waitForDisk()
        }
        #expect(events.all.last == .noRoom(path: path + ".corrupt-9Z", bytes: 1 << 44))
    }

    @Test(.timeLimit(.minutes(1))) func `a waiting query ends with its task`() async throws {
        let (entered, proceed) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let store = HistoryStore(
            directory: folder.path, settings: .init(), clock: .confirmed { [clock] in clock.now }, report: { _ in })
        store.open(
            unstored: { _ in
                entered.signal()
                proceed.wait()
                return []
            }, restored: { _, _ in })
        let running = (0..<HistoryStore.mostQueries).map { _ in
            Task { try await store.candles(of: .usd, .minute, in: 0..<1, limit: 1, for: 1) }
        }
        entered.wait()
        let waiting = Task { try await store.candles(of: .usd, .minute, in: 0..<1, limit: 1, for: 1) }
        waiting.cancel()
        await #expect(throws: HistoryError.self) { try await waiting.value }
        for _ in running { proceed.signal() }
        for query in running { _ = try await query.value }
    }

    @Test func `users take turns`() {
        var turns = QueryTurns<String>(capacity: 1)
        let asked = [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2), ("c1", 3), ("b2", 2)] as [(String, UInt32)]
        let mayRun = asked.enumerated().map { turns.enter($1.0, id: $0, of: $1.1) }
        #expect(mayRun == [true, false, false, false, false, false])
        let givenUp = [turns.giveUp(2), turns.giveUp(2)]
        #expect(givenUp == ["a3", nil])
        let next = (0..<5).map { _ in turns.leave() }
        #expect(next == ["b1", "c1", "a2", "b2", nil])
        let runsAgain = turns.enter("a4", id: 7, of: 1)
        #expect(runsAgain)
    }

    @Test(arguments: [Int64.max, .max - 3600, .min, .min + 3608])
    func `a row with an absurd time does not stop the store`(start: Int64) async throws {
        let first = store()
        keep(first, 0..<61)
        await first.close(within: .seconds(60))
        let database = try SQLiteDatabase(path: path)
        for step in ["minute", "hour"] {
            try database.execute("INSERT INTO \(step) VALUES (\(start),'USD',1,1,1,1,1,1,'own',NULL,NULL,NULL,NULL)")
        }
        let second = store()
        keep(second, 61..<122)
        #expect(second.failure == nil && second.held == 0)
        #expect(try await read(second, .minute).count == 122)
    }

    @Test func `counts from another program do not prevent the making of an hour`() async throws {
        let store = store()
        keep(store, 0..<2)
        try SQLiteDatabase(path: path).execute("UPDATE minute SET ticks = \(Int64.max), fresh = \(Int64.max)")
        // Also in an hour of minutes of version 2.
        try SQLiteDatabase(path: path).execute(
            "UPDATE minute SET seconds = NULL; UPDATE minute SET ticks = 60, fresh = 60 WHERE start = \(Self.start)")
        for absurd in [Int64.max, .min] {
            for column in ["seconds", "covered", "doubtful", "single"] {
                try SQLiteDatabase(path: path).execute(
                    "UPDATE minute SET \(column) = \(absurd) WHERE start = \(Self.start + 60)")
                _ = try await read(store, .minute)
            }
        }
        keep(store, 1..<61, conflict: .continues)
        #expect(store.failure == nil && store.held == 0)
        #expect(try await read(store, .hour).count == 2)
        let minutes = try await read(store, .minute)
        #expect(minutes.allSatisfy { $0.ticks <= Candle.mostTicks })
        #expect(minutes.count == 61)
    }

    @Test func `a replaced file is detected`() async throws {
        let store = store()
        keep(store, 0..<2)
        try #require(rename(path, path + ".moved") == 0)
        keep(store, 2..<4)
        let rows = try HistoryDatabase(path: path, now: Self.start)
        #expect(try rows.candles(of: .usd, .minute, in: 0..<Int64.max, limit: 9).count == 2)
    }

    @Test func `if the file can't be written, candles are held up to a bound, reported once, and written later`()
        async throws
    {
        // A folder in the place of the file.
        try #require(mkdir(path, 0o755) == 0)
        let store = store()
        keep(store, 0..<3)
        #expect(store.held == 3)
        #expect(store.failure != nil)
        await #expect(throws: HistoryError.self) { try await read(store, .minute) }
        for index in 0..<Int64(HistoryStore.mostHeld) { store.keep([KeptCandle(.eur, candle(index, 100), .keepsOwn)]) }
        store.waitForDisk()
        #expect(store.held == HistoryStore.mostHeld)
        try #require(rmdir(path) == 0)
        keep(store, 3..<4)
        #expect(store.held == 0)
        #expect(store.failure == nil)
        #expect(try await read(store, .minute).count == 1)
        #expect(events.all.count == 2)
        #expect(events.all.last == .recovered(candles: HistoryStore.mostHeld))
    }

    @Test func `a newer file is not touched`() throws {
        _ = try HistoryDatabase(path: path, now: Self.start)
        let database = try SQLiteDatabase(path: path)
        try database.execute("PRAGMA user_version = 4")
        #expect(throws: SQLiteError.self) { try HistoryDatabase(path: path, now: Self.start) }
        let store = store()
        keep(store, 0..<1)
        guard case .failed(let error)? = events.all.first else {
            Issue.record("\(events.all)")
            return
        }
        #expect(error.description.contains("newer btc-priced"))
    }

    @Test func `prices are kept exactly to eight places`() async throws {
        let store = store()
        for (minute, text) in ["68901.23", "1.00000001", "75500.123456785", "99999999.99999999"].enumerated() {
            clock.set(Self.start + Int64(minute) * 60 + 60)
            store.keep([KeptCandle(.usd, Candle(start: Self.start + Int64(minute) * 60, Price(text) ?? 0), .keepsOwn)])
            store.waitForDisk()
        }
        #expect(
            try await read(store, .minute).map(\.close.description) == [
                "68901.23", "1.00000001", "75500.12345678", "99999999.99999999",
            ])
    }

    @Test(arguments: ["1e30", "1e128", "1e20"])
    func `a price too large for a column is refused, and the store continues`(
        text: String
    ) async throws {
        let store = store()
        await #expect(throws: (any Error).self) {
            try await store.backfill([Candle(start: Self.start, try #require(Price(text)))], of: .usd, .minute)
        }
        clock.set(Self.start + 120)
        keep(store, 1..<2)
        #expect(try await read(store, .minute).map(\.close) == [68_901])
    }

    @Test func `a currency whose first write failed is found after a restart`() throws {
        let path = "\(folder.path)/\(HistoryStore.fileName)"
        let database = try HistoryDatabase(path: path, now: Self.start)
        let tooLarge = KeptCandle(.eur, Candle(start: Self.start, try #require(Price("1e20"))), .keepsOwn)
        #expect(throws: SQLiteError.self) { try database.add([tooLarge], at: Self.start + 60, oldest: nil) }
        let hour = Self.start..<Self.start + 3600
        try database.add(
            [KeptCandle(.eur, Candle(start: Self.start, 68_900), .keepsOwn)], at: hour.upperBound, oldest: nil)
        let reopened = try HistoryDatabase(path: path, now: hour.upperBound)
        #expect(try reopened.newest(of: .eur, .minute, before: hour.upperBound) != nil)
    }

    @Test(arguments: [
        "low = 0", "low = -5", "high = 9223372036854775807", "open = low - 1", "fresh = 61", "ticks = -1",
    ])
    func `a row that is not a valid candle is skipped`(wrong: String) async throws {
        let store = store()
        keep(store, 0..<3)
        store.waitForDisk()
        let path = "\(folder.path)/\(HistoryStore.fileName)"
        try SQLiteDatabase(path: path).execute("UPDATE minute SET \(wrong) WHERE start = \(Self.start + 60)")
        #expect(try await read(store, .minute).map(\.close) == [68_900, 68_902])
    }

    // MARK: - Episodes

    private func episode(
        _ start: Int64, _ end: Int64?, _ source: String = "kraken", worst: Int64? = nil, count: Int64 = 1
    ) -> Episode {
        Episode(
            .init(.outvoted, .eur, source: source), start: Self.start + start, end: end.map { Self.start + $0 },
            worst: worst, count: count)
    }

    private func episodes(
        _ store: HistoryStore, _ range: Range<Int64> = -1000..<100_000, from first: Int64? = nil, limit: Int = 100
    ) async throws -> ([Episode], next: Int64?) {
        let range = Self.start + range.lowerBound..<Self.start + range.upperBound
        return try await store.episodes(in: range, from: first, limit: limit, for: nil)
    }

    @Test func `episodes are written with the minute, in their last form, and read before that too`() async throws {
        let store = store()
        store.note([episode(10, nil, worst: 100)])
        store.note([episode(10, 40, worst: 300, count: 2), episode(50, nil)])
        let all = [episode(10, 40, worst: 300, count: 2), episode(50, nil)]
        #expect(try await episodes(store).0 == all, "not written yet")
        clock.set(Self.start + 60)
        store.keep([KeptCandle(.usd, candle(0, 100), .keepsOwn)])
        store.waitForDisk()
        #expect(try await episodes(store).0 == all)
        store.note([episode(50, 70)])
        store.close()
        let again = self.store()
        #expect(try await episodes(again).0 == [all[0], episode(50, 70)], "a stop writes them without a candle")
        again.close()
    }

    @Test func `an episode that went on when the daemon was killed ends with its last minute`() async throws {
        let store = store()
        store.note([episode(10, nil)])
        store.keep([KeptCandle(.usd, candle(3, 100), .keepsOwn)])
        store.waitForDisk()
        // No orderly stop.
        clock.set(Self.start + 300)
        let again = self.store()
        #expect(try await episodes(again).0 == [episode(10, 240)])
        again.close()
        store.close()
    }

    @Test func `what went on in a span is found, page by page, and what began in one second is not parted`()
        async throws
    {
        let store = store()
        let many = (0..<7).map { episode(100, 130, "source\($0)") }
        let known = [episode(0, 50), episode(10, nil, "a"), episode(20, 30, "b")] + many + [episode(200, 210)]
        store.note(known)
        clock.set(Self.start + 300)
        store.keep([KeptCandle(.usd, candle(0, 100), .keepsOwn)])
        store.waitForDisk()
        #expect(try await episodes(store, 40..<60).0 == [known[0], known[1]], "begun before it")
        #expect(try await episodes(store, 300..<400).0 == [known[1]], "it still goes on")
        for limit in [1, 2, 3, 4, 6, 8, 10, 11, 100] {
            var (found, first, pages) = ([Episode](), Int64?.none, 0)
            repeat {
                let page = try await episodes(store, from: first, limit: limit)
                #expect(!page.0.isEmpty)
                found += page.0
                (first, pages) = (page.next, pages + 1)
            } while first != nil && pages < 20
            #expect(found.count == known.count && Set(found) == Set(known), "\(limit)")
            #expect(found.map(\.start) == known.map(\.start), "\(limit)")
        }
        store.close()
    }

    @Test func `rows that are no episodes are left out, without a page that ends early, and old ones are deleted`()
        async throws
    {
        let first = store()
        first.close()
        let database = try SQLiteDatabase(path: "\(folder.path)/\(HistoryStore.fileName)")
        for row in [
            "1, '', 'salvaged', 'x', 1, NULL, 3", "2, 'USD', 'unknown', 'x', 3, NULL, 1",
            "3, 'USD', 'doubt', '', 4, NULL, 0",
            "4, '', 'clock', '', \(Int64.max), 7, 1", "5, '', 'clock', '', 6, \(Int64.max), 1",
            "\(Int64.max), '', 'clock', '', NULL, NULL, 1",
        ] {
            try database.execute("INSERT INTO event (start, currency, kind, source, end, worst, count) VALUES (\(row))")
        }
        let store = store(keep: .seconds(86_400))
        store.note([episode(0, 10), episode(1000, 1010)])
        let clock = Episode(.init(.clock), start: 5, end: 6)
        let range = 0..<Self.start + 10_000
        #expect(
            try await store.episodes(in: range, from: nil, limit: 9, for: nil).episodes
                == [clock, episode(0, 10), episode(1000, 1010)], "a bound that is absurd is left out")
        #expect(try await store.episodes(in: range, from: nil, limit: 1, for: nil).next == Self.start)
        #expect(try await store.episodes(in: range, from: nil, of: .eur, limit: 9, for: nil).episodes.count == 3)
        #expect(try await store.episodes(in: range, from: nil, of: .usd, limit: 9, for: nil).episodes == [clock])
        store.keep([KeptCandle(.usd, candle(0, 100), .keepsOwn)])
        store.waitForDisk()
        self.clock.set(Self.start + 86_400 + 3600 + 500)
        store.keep([KeptCandle(.usd, candle(1600, 100), .keepsOwn)])
        store.waitForDisk()
        #expect(try await episodes(store).0 == [episode(1000, 1010)])
        store.close()
        var salvaged = 0
        try database.prepare("SELECT 1 FROM event WHERE kind = 'salvaged'").run { _ in salvaged += 1 }
        #expect(salvaged == 1, "otherwise the damaged file would be read again")
    }

    @Test(arguments: [true, false])
    func `episodes are written while no candle is, as in an outage`(hadCandle: Bool) async throws {
        let store = store()
        if hadCandle { store.keep([KeptCandle(.usd, candle(0, 100), .keepsOwn)]) }
        store.waitForDisk()
        clock.set(Self.start + 30)
        store.note([episode(30, nil)])
        store.waitForDisk()
        let written = { () throws -> Int in
            var count = 0
            try SQLiteDatabase(path: "\(self.folder.path)/\(HistoryStore.fileName)").prepare("SELECT 1 FROM event").run
            { _ in
                count += 1
            }
            return count
        }
        #expect(try written() == 0, "with the next candle")
        clock.set(Self.start + 95)
        store.note([episode(80, nil, "b")])
        store.waitForDisk()
        #expect(try written() == 2)
        store.close()
    }
}
