import BTCPriceCore
import Files
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BTCPricePersistence

@Suite struct QuoteFileTests {
    private let file = QuoteFile(sequence: 42, price: sample("68901.23"))

    @Test func `the file is readable JSON with schema, sequence and checksum`() throws {
        let text = String(decoding: try file.encoded(), as: UTF8.self)
        #expect(text.contains("\"value\" : \"68901.23\""))
        #expect(text.contains("\"schemaVersion\" : 1"))
        #expect(text.contains("\"sequence\" : 42"))
        #expect(text.contains("\"market\" : \"BTC/USDT\""))
        #expect(text.hasSuffix("}\n"))
    }

    @Test func `a written file is read back`() throws {
        #expect(try QuoteFile(decoding: file.encoded()) == file)
        let bare = QuoteFile(sequence: 1, price: CachedPrice(ShownPrice(sample("1").quote)))
        #expect(try QuoteFile(decoding: bare.encoded()) == bare)
        let converted = CachedPrice(
            ShownPrice(
                sample("65456.1685").quote, observedBoottime: 4_000_000,
                conversion: Conversion(
                    value: Price("68901.23") ?? 0, rate: Price("0.95") ?? 0,
                    sources: ["coinbase"], measuredBoottime: 3_990_000)))
        let file = QuoteFile(sequence: 2, price: converted)
        #expect(try QuoteFile(decoding: file.encoded()) == file)
    }

    @Test func `cooldowns are stored, even without a price`() throws {
        let cooldowns = [
            "binance": cooldown(.rateLimited("HTTP 418", retryAfter: nil)), "kraken": cooldown(.refused("HTTP 403")),
        ]
        for price in [nil, sample("68901.23")] {
            let file = QuoteFile(sequence: 7, prices: price.map { [$0] } ?? [], cooldowns: cooldowns)
            #expect(try QuoteFile(decoding: file.encoded()) == file)
        }
        // A cooldown that a restart may shorten is not stored.
        let passing = QuoteFile(sequence: 7, cooldowns: ["binance": cooldown(.unavailable("HTTP 500"))])
        #expect(try QuoteFile(decoding: passing.encoded()).cooldowns.isEmpty)
    }

    @Test func `a file of the first release, without cooldowns, is read`() throws {
        var text = """
            {
              "checksum" : "00000000",
              "observedBoottime" : 5000000,
              "quote" : {
                "currency" : "USD",
                "market" : "BTC/USDT",
                "source" : "binance",
                "timestamp" : 1724000000123,
                "value" : "68901.23"
              },
              "schemaVersion" : 1,
              "sequence" : 42,
              "venues" : {

              }
            }

            """
        let checksum = String(CRC32.checksum(Array(text.utf8)), radix: 16)
        text.replace("00000000", with: String(repeating: "0", count: 8 - checksum.count) + checksum)
        let read = try QuoteFile(decoding: Array(text.utf8))
        #expect(read.price?.quote == sample("68901.23").quote)
        #expect(read.cooldowns.isEmpty)
    }

    @Test(arguments: ["0", "-1", "0.99", "100000000.01"])
    func `a price that no source may have costs its currency only`(value: String) throws {
        let kept = ["kraken": cooldown(.refused("HTTP 403"))]
        for currency in ["USD", "EUR"] {
            let good = sample("68901.23", in: currency == "USD" ? "EUR" : "USD")
            let file = QuoteFile(sequence: 1, prices: [good, sample(value, in: currency)], cooldowns: kept)
            let read = try QuoteFile(decoding: file.encoded())
            #expect(read.prices == [good])
            #expect(read.cooldowns == kept)
            #expect(
                [
                    "the price in \(currency) (the price is outside the accepted range)",
                    "the price in \(currency) (the field 'value' is missing or not valid)",
                ].contains(read.unusable.joined()))
        }
    }

    @Test(arguments: [("1e-12", "0.95"), ("1e12", "0.95"), ("68901.23", "0"), ("68901.23", "1e30")])
    func `a conversion with absurd numbers is not read from the disk`(value: String, rate: String) throws {
        let price = CachedPrice(
            ShownPrice(
                sample("65456").quote, observedBoottime: 4_000_000,
                conversion: Conversion(
                    value: Price(value) ?? 0, rate: Price(rate) ?? 0, sources: [], measuredBoottime: 3_990_000)))
        let read = try QuoteFile(decoding: QuoteFile(sequence: 1, price: price).encoded())
        #expect(read.prices == [])
        #expect(read.unusable == ["the price in USD (the conversion is not valid)"])
    }

    @Test(arguments: [Int64.min, .max])
    func `numbers that would overflow in calculations are not read`(number: Int64) throws {
        let (time, boottime) = (Timestamp(milliseconds: number), BootTime(milliseconds: number))
        let good = sample("1")
        let quote = PriceQuote(value: 1, currency: "USD", timestamp: time, source: "binance", market: "BTC/USDT")
        let far = ObservationTime(wall: time, boottime: boottime)
        func kept(_ since: ObservationTime, _ until: ObservationTime, _ consecutiveFailures: Int) -> QuoteFile {
            let cooldown = SourceCooldown(
                reason: .refused("HTTP 403"), since: since, until: until, consecutiveFailures: consecutiveFailures)
            return QuoteFile(
                sequence: 1, price: good,
                cooldowns: ["kraken": KeptCooldown(address: "", cooldown: cooldown, isOfThisBoot: true)])
        }
        let near = ObservationTime(wall: Timestamp(milliseconds: 0), boottime: 0)
        let bytes = try QuoteFile(sequence: number, price: good).encoded()
        #expect(throws: QuoteFile.Damage.self) { try QuoteFile(decoding: bytes) }
        for price in [
            CachedPrice(ShownPrice(quote)),
            CachedPrice(ShownPrice(good.quote, observedBoottime: boottime)),
        ] {
            let read = try QuoteFile(decoding: QuoteFile(sequence: 1, price: price).encoded())
            #expect(read.prices == [])
            #expect(read.unusable.count == 1)
        }
        for file in [kept(far, near, 1), kept(near, far, 1), kept(near, near, Int(number))] {
            let read = try QuoteFile(decoding: file.encoded())
            #expect(read.prices == [good])
            #expect(read.cooldowns == [:])
            #expect(read.unusable.count == 1)
        }
    }

    @Test func `one damaged byte at any place is detected`() throws {
        let bytes = try file.encoded()
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1
            #expect(throws: QuoteFile.Damage.self, "byte \(index)") { try QuoteFile(decoding: damaged) }
        }
    }

    @Test func `a file cut off at any place is detected`() throws {
        let bytes = try file.encoded()
        for count in 0..<bytes.count {
            #expect(throws: QuoteFile.Damage.self, "\(count) bytes") { try QuoteFile(decoding: Array(bytes[..<count])) }
        }
    }

    @Test func `the checksum is CRC-32`() {
        // The check value in CRC catalogues.
        #expect(CRC32.checksum(Array("123456789".utf8)) == 0xCBF4_3926)
    }
}

@Suite struct StoreTests {
    /// Two folders, one of them on a tmpfs, and a clock.
    final class Setup {
        let state = TemporaryDirectory()
        let runtime: String
        let time = TimeBox()

        init() {
            runtime = "/dev/shm/btc-priced-test-\(UInt64.random(in: 0 ... .max))"
            mkdir(runtime, 0o700)
        }

        deinit { try? FileManager.default.removeItem(atPath: runtime) }

        func store() -> FilePriceStore {
            FilePriceStore(stateDirectory: state.path, runtimeDirectory: runtime) { [time] in time.now }
        }

        var runtimeFile: String { "\(runtime)/last-quote.json" }
        var stateFile: String { "\(state.path)/last-quote.json" }
    }

    final class TimeBox: Sendable {
        private let milliseconds = Atomic<Int64>(0)
        var now: ObservationTime {
            let passed = milliseconds.load(ordering: .relaxed)
            return ObservationTime(
                wall: Timestamp(milliseconds: 1_724_596_200_000 + passed), boottime: 5_000_000 + passed)
        }
        func advance(_ duration: Duration) { milliseconds.add(duration.wholeMilliseconds, ordering: .relaxed) }
    }

    @Test func `without files nothing is loaded`() {
        #expect(Setup().store().load() == StoredPrice())
    }

    @Test func `after a kill the runtime copy is served, its age exact`() throws {
        let setup = Setup()
        let store = setup.store()
        _ = store.load()
        try store.save(sample("68901.23"))
        try store.save(sample("68902"))
        // No flush, as after a kill.
        let loaded = setup.store().load()
        #expect(loaded.price == sample("68902"))
        #expect(loaded.price?.price.observedBoottime != nil)
        #expect(loaded.problems == [])
    }

    @Test func `after a reboot the disk's copy is served, its age an estimate`() throws {
        let setup = Setup()
        let store = setup.store()
        _ = store.load()
        try store.save(sample("68901.23"))
        try store.flush()
        unlink(setup.runtimeFile)
        let loaded = setup.store().load()
        #expect(loaded.price?.quote == sample("68901.23").quote)
        #expect(loaded.price?.price.observedBoottime == nil)
        #expect(loaded.price?.positions == sample("1").positions)
    }

    @Test func `a derived price is one after a reboot, too`() throws {
        let setup = Setup()
        let store = setup.store()
        _ = store.load()
        let derivation = Derivation(
            value: 59_254, currency: "EUR", rate: 25, rateSource: "ecb", rateDate: "2026-11-20")
        let price = CachedPrice(ShownPrice(sample("68901.23").quote, observedBoottime: 1, derivation: derivation))
        try store.save([price], cooldowns: [:])
        try store.flush()
        unlink(setup.runtimeFile)
        #expect(setup.store().load().price?.price.derivation == derivation)
    }

    @Test func `cooldowns survive a kill by the boot clock, and a reboot by the wall clock`() throws {
        let setup = Setup()
        let store = setup.store()
        _ = store.load()
        let kept = cooldown(.rateLimited("HTTP 418", retryAfter: nil))
        try store.save([], cooldowns: ["binance": kept])
        #expect(setup.store().load() == StoredPrice(cooldowns: ["binance": kept]))
        try store.flush()
        unlink(setup.runtimeFile)
        #expect(setup.store().load() == StoredPrice(cooldowns: ["binance": kept.ofAnotherBoot]))
    }

    @Test func `a runtime directory that is not on a tmpfs does not prove the boot`() throws {
        let setup = Setup()
        let onDisk = TemporaryDirectory()
        let isDisk = !FileSystem.isVolatile(onDisk.path)
        let store = FilePriceStore(stateDirectory: setup.state.path, runtimeDirectory: onDisk.path) {
            [time = setup.time] in time.now
        }
        try store.save(sample("68901.23"))
        let again = FilePriceStore(stateDirectory: setup.state.path, runtimeDirectory: onDisk.path) {
            [time = setup.time] in time.now
        }
        if isDisk { #expect(again.load().price?.price.observedBoottime == nil) }
        #expect(FileSystem.isVolatile("/dev/shm"))
        #expect(!FileSystem.isVolatile("/proc"))
    }

    @Test func `the higher sequence wins, whatever the clock shows`() throws {
        let setup = Setup()
        let store = setup.store()
        for value in ["1", "2", "3"] { try store.save(sample(value)) }
        try store.flush()
        // The runtime copy is older than the disk's, but its wall clock is a year ahead.
        let late = CachedPrice(
            ShownPrice(
                PriceQuote(
                    value: 9, currency: "USD", timestamp: Timestamp(milliseconds: 1_756_000_000_000), source: "binance",
                    market: "BTC/USDT"), observedBoottime: 1))
        try FileSystem.replace(setup.runtimeFile, with: QuoteFile(sequence: 2, price: late).encoded(), sync: false)
        #expect(setup.store().load().price?.quote.value == 3)
    }

    @Test func `the sequence continues after a restart`() throws {
        let setup = Setup()
        for value in 1...3 {
            let store = setup.store()
            _ = store.load()
            try store.save(sample("\(value)"))
        }
        let bytes = try #require(try FileSystem.read(setup.runtimeFile))
        #expect(try QuoteFile(decoding: bytes).sequence == 3)
    }

    @Test func `the disk gets the first copy at once and then one in thirty seconds`() throws {
        let setup = Setup()
        let store = setup.store()
        _ = store.load()
        func onDisk() throws -> Int64? {
            store.waitForDisk()
            return try FileSystem.read(setup.stateFile).map { try QuoteFile(decoding: $0).sequence }
        }
        try store.save(sample("1"))
        #expect(try onDisk() == 1)
        for second in 1...29 {
            setup.time.advance(.seconds(1))
            try store.save(sample("\(second)"))
        }
        #expect(try onDisk() == 1)
        setup.time.advance(.seconds(1))
        try store.save(sample("30"))
        #expect(try onDisk() == 31)
        try store.save(sample("31"))
        try store.flush()
        #expect(try onDisk() == 32)
    }

    @Test func `quick restarts do not wear the disk`() throws {
        let setup = Setup()
        var written: Set<ino_t> = []
        for _ in 0..<10 {
            let store = setup.store()
            _ = store.load()
            let time = setup.time.now
            try store.save(
                CachedPrice(
                    ShownPrice(
                        PriceQuote(
                            value: 5, currency: "USD", timestamp: time.wall, source: "binance", market: "BTC/USDT"),
                        observedBoottime: time.boottime)))
            store.waitForDisk()
            var status = stat()
            #expect(stat(setup.stateFile, &status) == 0)
            written.insert(status.st_ino)
            setup.time.advance(.seconds(1))
        }
        #expect(written.count == 1)
    }

    @Test func `a damaged file is set aside and reported, and the other copy is served`() throws {
        let setup = Setup()
        let store = setup.store()
        try store.save(sample("68901.23"))
        try store.flush()
        try FileSystem.replace(setup.runtimeFile, with: Array("{\"half".utf8), sync: false)
        let loaded = setup.store().load()
        #expect(loaded.price?.quote == sample("68901.23").quote)
        #expect(
            loaded.problems == [
                .corrupt(path: setup.runtimeFile, reason: "no checksum", setAside: setup.runtimeFile + ".corrupt")
            ])
        #expect(access(setup.runtimeFile, F_OK) != 0)
        #expect(access(setup.runtimeFile + ".corrupt", F_OK) == 0)
    }

    @Test func `a newer version's file is left as it is, and nothing is written`() throws {
        let setup = Setup()
        var text = String(decoding: try QuoteFile(sequence: 7, price: sample("1")).encoded(), as: UTF8.self)
        text.replace(#""schemaVersion" : 1"#, with: #""schemaVersion" : 2"#)
        text.replace(/"checksum" : "[0-9a-f]{8}"/, with: #""checksum" : "00000000""#)
        let checksum = String(CRC32.checksum(Array(text.utf8)), radix: 16)
        text.replace("00000000", with: String(repeating: "0", count: 8 - checksum.count) + checksum)
        try FileSystem.replace(setup.stateFile, with: Array(text.utf8), sync: false)
        let store = setup.store()
        let expected = PriceStoreError.unwritable(
            path: setup.stateFile,
            reason:
                "a newer version wrote it (schema version 2 is not supported); install that version, or move the file away and restart"
        )
        #expect(store.load() == StoredPrice(problems: [expected]))
        #expect(throws: expected) { try store.save(sample("2")) }
        try store.flush()
        #expect(try FileSystem.read(setup.stateFile) == Array(text.utf8))
        #expect(access(setup.runtimeFile, F_OK) != 0)
    }

    @Test func `what is not valid in a file is left out and reported once`() throws {
        let setup = Setup()
        let file = QuoteFile(sequence: 1, prices: [sample("0"), sample("59000", in: "EUR")])
        for path in [setup.runtimeFile, setup.stateFile] {
            try FileSystem.replace(path, with: file.encoded(), sync: false)
        }
        let loaded = setup.store().load()
        #expect(loaded.prices == [sample("59000", in: "EUR")])
        #expect(
            loaded.problems.map(\.description) == [
                "\(setup.runtimeFile) is used without the price in USD (the field 'value' is missing or not valid)"
            ])
        #expect(access(setup.runtimeFile, F_OK) == 0)
    }

    @Test func `the prices of all currencies with ten sources each, and a hundred bans, survive a restart`() throws {
        let setup = Setup()
        let venues = (10..<20).map { "an-exchange-with-a-long-name-\($0)" }
        let prices = Currency.all.map { currency in
            let markets = venues.map { Market($0, currency.pair) }
            return CachedPrice(
                ShownPrice(
                    PriceQuote(
                        value: currency.prices.upperBound, currency: currency.rawValue,
                        timestamp: Timestamp(milliseconds: 1_724_000_000_123), source: venues[0], market: currency.pair),
                    observedBoottime: 4_000_000, confirmation: .confirmed,
                    derivation: Derivation(
                        value: 59_254, currency: "EUR", rate: Price(1, scale: 4), rateSource: "frankfurter",
                        rateDate: "2026-11-20")),
                positions: markets.map {
                    KeptPosition(
                        $0, FeedPosition(time: Timestamp(milliseconds: 1_724_000_000_123), sequence: .max),
                        address: "https://\(String(repeating: "a", count: 240)).example")
                }, learned: markets.map { LearnedBasis(market: $0, millionths: -99_999, age: 3_600_000) })
        }
        let kept = cooldown(.rateLimited(String(repeating: "\u{1F4A9}", count: 160), retryAfter: nil))
        let cooldowns = Dictionary(uniqueKeysWithValues: (100..<200).map { ("exchange-\($0)", kept) })
        try setup.store().save(prices, cooldowns: cooldowns)
        let loaded = setup.store().load()
        #expect(Set(loaded.prices) == Set(prices))
        #expect(loaded.cooldowns == cooldowns)
        #expect(loaded.problems == [])
        // There is room for the texts and numbers of a later version.
        let count = try #require(try FileSystem.read(setup.runtimeFile)).count
        #expect(count < FileSystem.largestFile << 20 / 4)
    }

    @Test func `a file that is too long is reported as that, and the other copy is served`() throws {
        let setup = Setup()
        let store = setup.store()
        try store.save(sample("68901.23"))
        try store.flush()
        let bytes = [UInt8](repeating: UInt8(ascii: " "), count: FileSystem.largestFile << 20 + 1)
        try FileSystem.replace(setup.runtimeFile, with: bytes, sync: false)
        let loaded = setup.store().load()
        #expect(loaded.price?.quote == sample("68901.23").quote)
        #expect(loaded.problems.map(\.description) == ["cannot read \(setup.runtimeFile): longer than 4 MiB"])
    }

    @Test func `if the runtime directory can't be written, the state directory gets every copy`() throws {
        let setup = Setup()
        let store = setup.store()
        try store.save(sample("1"))
        store.waitForDisk()
        try FileManager.default.removeItem(atPath: setup.runtime)
        for value in ["2", "3"] {
            #expect(throws: PriceStoreError.unwritable(path: setup.runtimeFile, reason: "No such file or directory")) {
                try store.save(sample(value))
            }
        }
        store.waitForDisk()
        #expect(setup.store().load().price?.quote.value == 3)
    }

    @Test func `a copy that did not reach the disk is written at the stop`() throws {
        let setup = Setup()
        let directory = "\(setup.state.path)/late"
        let store = FilePriceStore(stateDirectory: directory, runtimeDirectory: setup.runtime) {
            [time = setup.time] in time.now
        }
        try store.save(sample("7"))
        store.waitForDisk()
        mkdir(directory, 0o700)
        try store.flush()
        let bytes = try #require(try FileSystem.read("\(directory)/last-quote.json"))
        #expect(try QuoteFile(decoding: bytes).price?.quote.value == 7)
    }

    @Test func `unsynchronised copies do not replace the synchronised one`() throws {
        let setup = Setup()
        let store = setup.store()
        try store.save(sample("1"))
        store.waitForDisk()
        try FileManager.default.removeItem(atPath: setup.runtime)
        #expect(throws: PriceStoreError.self) { try store.save(sample("2")) }
        // The copy in its place is written on the disk's queue.
        store.waitForDisk()
        let synced = try #require(try FileSystem.read(setup.stateFile))
        #expect(try QuoteFile(decoding: synced).price?.quote.value == 1)
        // A power cut may leave such a copy empty.
        try FileSystem.replace("\(setup.state.path)/last-quote.unsynced.json", with: [], sync: false)
        #expect(setup.store().load().price?.quote.value == 1)
    }

    @Test func `a disk that can't be written is reported, and the runtime copy is kept`() throws {
        let setup = Setup()
        let missing = FilePriceStore(stateDirectory: "\(setup.state.path)/none", runtimeDirectory: setup.runtime) {
            [time = setup.time] in time.now
        }
        try missing.save(sample("1"))
        missing.waitForDisk()
        let failure = PriceStoreError.unwritable(
            path: "\(setup.state.path)/none/last-quote.json", reason: "No such file or directory")
        #expect(throws: failure) { try missing.save(sample("2")) }
        let loaded = FilePriceStore(stateDirectory: "\(setup.state.path)/none", runtimeDirectory: setup.runtime) {
            [time = setup.time] in time.now
        }.load()
        #expect(loaded.price?.quote.value == 2)
        mkdir("\(setup.state.path)/none", 0o700)
        setup.time.advance(.seconds(31))
        #expect(throws: failure) { try missing.save(sample("3")) }
        missing.waitForDisk()
        #expect(throws: Never.self) { try missing.save(sample("4")) }
    }
}

@Suite struct StateLockTests {
    @Test func `a directory has one daemon, and the second one learns which`() throws {
        let directory = TemporaryDirectory()
        do {
            let lock = try StateLock(directory: directory.path)
            do {
                _ = try StateLock(directory: directory.path)
                Issue.record("locked twice")
            } catch {
                #expect(error == .alreadyRunning(pid: getpid()))
            }
            _ = consume lock
        }
        _ = try StateLock(directory: directory.path)
    }

    @Test func `a missing directory is reported`() {
        do {
            _ = try StateLock(directory: "/none")
            Issue.record("locked")
        } catch {
            #expect(error == .unusable(path: "/none/lock", reason: "No such file or directory"))
        }
    }
}

@Suite struct RateFileTests {
    private let directory = TemporaryDirectory()

    @Test func `the rates are read back, with those of the day before`() {
        let date = Timestamp(milliseconds: 86_400_000)
        let table = ReferenceRateTable(
            "ecb", of: .eur, [(.usd, Price(117, scale: 2), date)],
            earlier: [(.usd, Price(116, scale: 2), Timestamp(milliseconds: 0))], received: date)
        let file = RateFile(stateDirectory: directory.path)
        file.save([table])
        file.flush()
        #expect(RateFile(stateDirectory: directory.path).load() == [table])
    }

    @Test func `the rates of past days are read back, without what is not valid`() throws {
        let history = RateHistory(
            "frankfurter", of: .eur, [.usd: .init(days: 100...200, rates: [100: Price(116, scale: 2), 150: 1])],
            renewed: Timestamp(milliseconds: 17))
        let file = RateFile(stateDirectory: directory.path)
        #expect(file.loadHistory() == nil)
        file.save(history)
        file.flush()
        #expect(RateFile(stateDirectory: directory.path).loadHistory() == history)
        let path = "\(directory.path)/rate-history.json"
        let text = """
            {"source": "frankfurter", "base": "EUR", "renewed": 17, "currencies": {"USD": {"from": 8640000000, "until": 17280000000,
            "rates": [["1.16", 8640000000], ["1", 12960000000], [1, 0], ["0", 0], ["2"], 7]}, "XXX": {"from": 0, "until": 0},
            "CZK": {"from": 86400000, "until": 0}, "PLN": 7}}
            """
        try FileSystem.replace(path, with: Array(text.utf8), sync: false)
        #expect(file.loadHistory() == history)
        for text in ["", "[]", #"{"source": 7, "base": "EUR", "currencies": {}}"#] {
            try FileSystem.replace(path, with: Array(text.utf8), sync: false)
            #expect(file.loadHistory() == nil)
        }
    }

    @Test func `a rate or a source that is not valid is left out of an earlier version's file`() throws {
        let text = """
            {"ecb": {"base": "EUR", "received": 0, "rates": {"CZK": [24.5, 0], "XXX": ["1", 0], "USD": ["1.16", 0], "HUF": 7}},
            "frankfurter": {"base": "EUR", "rates": {"USD": ["1.16", 0]}}, "mine": []}
            """
        try FileSystem.replace("\(directory.path)/reference-rates.json", with: Array(text.utf8), sync: false)
        let date = Timestamp(milliseconds: 0)
        let left = ReferenceRateTable("ecb", of: .eur, [(.usd, Price(116, scale: 2), date)], received: date)
        #expect(RateFile(stateDirectory: directory.path).load() == [left])
    }
}

func sample(_ value: String, in currency: String = "USD") -> CachedPrice {
    CachedPrice(
        ShownPrice(
            PriceQuote(
                value: Price(value) ?? 0, currency: currency,
                timestamp: Timestamp(milliseconds: 1_724_000_000_123),
                source: "binance", market: "BTC/USDT"), observedBoottime: 4_000_000),
        positions: [
            KeptPosition(
                Market("coinbase", "BTC/USD"), FeedPosition(time: Timestamp(milliseconds: 17), sequence: 4),
                address: "https://api.exchange.coinbase.com"),
            KeptPosition(Market("cryptocompare", "BTC/USD"), FeedPosition(time: Timestamp(milliseconds: 5))),
        ], learned: [LearnedBasis(market: Market("kraken", "BTC/USD"), millionths: -730, age: 12_000)])
}

extension FilePriceStore {
    /// The file without cooldowns, for most tests.
    fileprivate func save(_ price: CachedPrice) throws(PriceStoreError) { try save([price], cooldowns: [:]) }
}

private func cooldown(_ reason: PriceLoadingError) -> KeptCooldown {
    let since = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_200_000), boottime: 5_000_000)
    let until = ObservationTime(wall: Timestamp(milliseconds: 1_724_596_260_000), boottime: 5_060_000)
    return KeptCooldown(
        address: "https://api.binance.com",
        cooldown: SourceCooldown(reason: reason, since: since, until: until, consecutiveFailures: 2), isOfThisBoot: true
    )
}

extension QuoteFile {
    fileprivate init(sequence: Int64, price: CachedPrice, cooldowns: [String: KeptCooldown] = [:]) {
        self.init(sequence: sequence, prices: [price], cooldowns: cooldowns)
    }

    fileprivate var price: CachedPrice? { prices.first }
}

extension StoredPrice {
    fileprivate var price: CachedPrice? { prices.first }
}
