import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct VenueClocksTests {
    private func told(_ errors: [Int64]) -> Int64 {
        var clocks = VenueClocks()
        for second in [-1000, 0] {
            for (index, error) in errors.enumerated() {
                clocks.record(
                    Timestamp(milliseconds: World.start.wall.milliseconds + error + Int64(second)),
                    of: "venue \(index)",
                    at: ObservationTime(wall: World.start.wall, boottime: World.start.boottime + Int64(second)))
            }
        }
        return clocks.wallTime(at: World.start).milliseconds - World.start.wall.milliseconds
    }

    @Test(
        arguments: [
            ([], 0), ([3_600_000], 3_600_000), ([0, 3_600_000], 0), ([3_600_000, 0, 3_600_500], 3_600_000),
            ([0, 0, -86_400_000], 0), ([900, 300], 300),
        ] as [([Int64], Int64)])
    func `our clock is wrong if most venues disagree with it`(errors: [Int64], expected: Int64) {
        #expect(told(errors) == expected)
    }

    @Test func `one venue overrules our clock only while its own advances`() {
        var clocks = VenueClocks()
        func wall(after second: Int64, says time: Int64, cacheTime: Duration = .zero) -> Int64 {
            let now = World.start.advanced(by: .seconds(second))
            clocks.record(
                Timestamp(milliseconds: World.start.wall.milliseconds + time * 1000), of: "coinbase",
                cacheTime: cacheTime, at: now)
            return (clocks.wallTime(at: now).milliseconds - World.start.wall.milliseconds) / 1000
        }
        // Three hours behind: accepted from the second response on.
        #expect(wall(after: 0, says: -10_800) == 0)
        for second in 1...200 as ClosedRange<Int64> {
            #expect(wall(after: second, says: second - 10_800) == second - 10_800)
        }
        // From then on the responses come from a cache.
        for second in 201...260 as ClosedRange<Int64> {
            let seen = wall(after: second, says: -10_600)
            #expect(clocks.stands("coinbase") == (second > 202) && (second <= 202 || seen == second))
        }
        // A venue whose responses are cached for 10 s does not count as stopped.
        clocks = VenueClocks()
        for second in 0...60 as ClosedRange<Int64> {
            _ = wall(after: second, says: second / 10 * 10, cacheTime: .seconds(10))
            #expect(!clocks.stands("coinbase"))
        }
    }

    @Test func `a price without a time is refused if it comes from a cache`() throws {
        var (book, clocks) = (ObservationBook(currency: .usd), VenueClocks())
        for second in 0...9 as ClosedRange<Int64> {
            let now = World.start.advanced(by: .seconds(second))
            let loaded = [LoadedPrice(.binance, 68_900, venueClock: World.start.wall)]
            clocks.record(World.start.wall, of: "binance", at: now)
            do throws(PriceLoadingError) {
                try book.record(loaded, of: .binance, clocks: clocks, at: now)
                #expect(second <= 2)
            } catch {
                #expect(second > 2 && error.category == .staleData)
            }
        }
    }

    @Test func `a reported time stays correct if our clock is set`() {
        var clocks = VenueClocks()
        clocks.record(World.start.wall, of: "coinbase", at: World.start)
        clocks.record(
            Timestamp(milliseconds: World.start.wall.milliseconds + 1000), of: "coinbase",
            at: ObservationTime(wall: World.start.wall, boottime: World.start.boottime + 1000))
        let set = ObservationTime(
            wall: Timestamp(milliseconds: World.start.wall.milliseconds - 3_590_000),
            boottime: World.start.boottime + 10_000)
        #expect(clocks.wallTime(at: set).milliseconds == World.start.wall.milliseconds + 10_000)
    }

    /// - Parameter errors: What each venue's clock says minus this machine's, seconds.
    @Test(
        arguments: [
            ([], "unknown"), ([0], "agrees"), ([7200], "unknown"), ([59, -59], "agrees"), ([3600, 3600], "differs"),
            ([3600, 0], "agrees"), ([0, 0, 9999], "agrees"), ([-900, -901, 0], "differs"),
            ([-900, 300, 0], "unknown"),
            ([86_400, 86_401, 86_399, 0], "differs"), ([3600, 3600, 0, 0], "agrees"),
        ] as [([Int64], String)])
    func `this machine's clock is wrong if most of at least two venues agree on another time, and it is a witness`(
        errors: [Int64], expected: String
    ) {
        var clocks = VenueClocks()
        for (number, error) in errors.enumerated() {
            clocks.record(World.start.wall.advanced(by: .seconds(error)), of: "\(number)", at: World.start)
        }
        switch clocks.comparison(at: World.start) {
        case .unknown: #expect(expected == "unknown")
        case .agrees: #expect(expected == "agrees")
        case .differs(let difference):
            #expect(expected == "differs" && errors.contains(difference.milliseconds / 1000))
        }
        // This machine's clock is set; the venues' stay known, since the boot clock was not.
        let set = ObservationTime(
            wall: World.start.wall.advanced(by: .seconds(errors.first ?? 0)), boottime: World.start.boottime)
        if errors.count == 2, expected == "differs" { #expect(clocks.comparison(at: set) == .agrees) }
    }

    @Test func `old times count only while no two newer ones are known`() {
        var clocks = VenueClocks()
        for venue in ["a", "b", "c"] { clocks.record(World.start.wall, of: venue, at: World.start) }
        // The machine was stopped for a day, and so was its boot clock.
        let later = World.start.advanced(by: .seconds(180))
        let day = later.wall.advanced(by: .seconds(86_400))
        clocks.record(day, of: "a", at: later)
        #expect(clocks.comparison(at: later) == .agrees)
        clocks.record(day, of: "b", at: later)
        #expect(
            clocks.comparison(at: later)
                == .differs(ClockDifference(milliseconds: 86_400_000, venues: 2, known: 2)))
    }

    @Test func `an exchange that was removed has no vote about the time, and no position`() throws {
        var (book, clocks) = (ObservationBook(currency: .usd), VenueClocks())
        func record(_ market: Market, ahead milliseconds: Int64) throws(PriceLoadingError) {
            let time = Timestamp(milliseconds: World.start.wall.milliseconds + milliseconds)
            let price = LoadedPrice(market, 68_900, position: FeedPosition(time: time, sequence: 1), venueClock: time)
            clocks.record(time, of: market.venue, at: World.start)
            try book.record([price], of: market, clocks: clocks, at: World.start)
        }
        try record(.coinbase, ahead: 3_600_000)
        try record(.kraken, ahead: 3_600_000)
        #expect(throws: PriceLoadingError.self) { try record(.binance, ahead: 0) }
        book.keep(only: [.binance: MarketAddress(host: "https://binance", path: "/t")], interval: 1000)
        clocks.keep(only: ["binance"])
        try record(.binance, ahead: 0)
        #expect(book.positions.map(\.market) == [.binance])
    }

    @Test func `trade numbers that begin again are refused for a minute, and not at another address`() throws {
        var book = ObservationBook(currency: .usd)
        func numbers(_ sequence: Int64, at second: Int64) -> Bool {
            let price = LoadedPrice(.kraken, 68_900, position: FeedPosition(sequence: sequence))
            return (try? book.record([price], of: .kraken, at: World.start.advanced(by: .seconds(second)))) != nil
        }
        book.keep(only: [.kraken: MarketAddress(host: "https://a", path: "/t")], interval: 1000)
        #expect(numbers(1_000_000, at: 0))
        #expect(!numbers(5, at: 1) && !numbers(60, at: 60))
        #expect(numbers(61, at: 61) && !numbers(60, at: 62))
        book.keep(only: [.kraken: MarketAddress(host: "https://a", path: "/u")], interval: 1000)
        #expect(numbers(5, at: 63))
        // Over a restart: at the same address, at another one, and of a version that did not store it.
        let kept = book.positions
        #expect(kept == [KeptPosition(.kraken, FeedPosition(sequence: 5), address: "https://a")])
        for (address, isRefused) in [("https://a", true), ("https://c", false)] {
            book = ObservationBook(currency: .usd)
            book.keep(only: [.kraken: MarketAddress(host: address, path: "/t")], interval: 1000)
            book.restore(kept, at: World.start.boottime)
            #expect(numbers(4, at: 1) != isRefused)
        }
        book = ObservationBook(currency: .usd)
        book.keep(only: [.kraken: MarketAddress(host: "https://b", path: "/t")], interval: 30_000)
        book.restore([KeptPosition(.kraken, FeedPosition(sequence: 5))], at: World.start.boottime)
        // With long intervals, for three of them.
        #expect(!numbers(4, at: 90) && numbers(4, at: 91))
    }

    @Test func `what was learned of a market is forgotten with its address`() throws {
        let rounds = Rounds([.coinbase, .bitstamp], belief: Belief())
        let addresses: [Market: MarketAddress] = [
            .coinbase: MarketAddress(host: "https://a", path: "/t"),
            .bitstamp: MarketAddress(host: "https://b", path: "/t"),
        ]
        rounds.tracker.changed(interval: .seconds(1), rules: SelectionRules(), addresses: addresses)
        for second in 0..<10 {
            rounds.prices = [.coinbase: "68900.\(second + 10)", .bitstamp: "68960.\(second + 10)"]
            rounds.observe(.bitstamp, at: Double(second) + 0.5)
            _ = rounds.tick(at: Double(second) + 1)
        }
        let stored = rounds.tracker.kept
        let kept = try #require(stored)
        #expect(kept.learned?.map(\.market) == [.bitstamp, .coinbase])
        rounds.tracker.changed(
            interval: .seconds(1), rules: SelectionRules(),
            addresses: [
                .coinbase: MarketAddress(host: "https://a", path: "/t"),
                .bitstamp: MarketAddress(host: "https://c", path: "/t"),
            ])
        #expect(rounds.belief.bases[.bitstamp] == nil && rounds.belief.bases[.coinbase] != nil)
        #expect(rounds.tracker.book.newest(.bitstamp) == nil)
    }

    @Test func `a market that trades rarely may have an older price`() {
        var gaps = TradeGaps()
        #expect(gaps.oldest == .seconds(60))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 0), sequence: 10))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 60_000), sequence: 13))
        #expect(gaps.oldest == .seconds(200))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: 90_000_000), sequence: 14))
        #expect(gaps.oldest == .seconds(3000))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: .max / 2), sequence: .max))
        gaps.record(FeedPosition(time: Timestamp(milliseconds: .max / 2 + 1), sequence: .min))
        #expect(gaps.oldest >= .seconds(60))
        // Two times are enough.
        var times = TradeGaps()
        times.record(FeedPosition(time: Timestamp(milliseconds: 0)))
        times.record(FeedPosition(time: Timestamp(milliseconds: 15_000)))
        #expect(times.oldest == .seconds(150))
    }

    @Test func `a market that trades rarely is as young as the last change of its quotes`() throws {
        var book = ObservationBook(currency: .usd)
        let trade = FeedPosition(time: World.start.wall)
        func age(at seconds: Double, bid: String) throws(PriceLoadingError) -> Int64? {
            try book.record(
                [
                    LoadedPrice(
                        .coinbase, 68_900, position: trade,
                        quotes: LoadedQuotes(bid: price(bid), ask: 68_910))
                ], of: .coinbase, at: Rounds.time(seconds)
            ).age
        }
        #expect(try age(at: 30, bid: "68890") == 30_000)
        #expect(try age(at: 40, bid: "68891") == 0)
        #expect(try age(at: 90, bid: "68891") == 50_000, "older than a minute, and its quotes are not")
        #expect(throws: PriceLoadingError.self) { try age(at: 101, bid: "68891") }
    }

    @Test func `a time in the future is no time, which is told once, and its price is in doubt`() throws {
        let rounds = Rounds([.coinbase])
        for second in 1...70 {
            rounds.prices = [.coinbase: "68900"]
            rounds.positions[.coinbase] = FeedPosition(
                time: Timestamp(milliseconds: World.start.wall.milliseconds + 9 * 3_600_000), sequence: 7)
            #expect(rounds.tick(at: Double(second))?.confirmation == .unconfirmed)
            #expect(
                rounds.tracker.isNewlyAhead(.coinbase, at: Rounds.time(Double(second)).boottime) == (second == 6))
        }
        #expect(rounds.tracker.book.newest(.coinbase)?.position == FeedPosition(sequence: 7))
        rounds.positions[.coinbase] = FeedPosition(
            time: Timestamp(milliseconds: World.start.wall.milliseconds + 80_000), sequence: 8)
        _ = rounds.tick(at: 71)
        #expect(
            !rounds.tracker.isNewlyAhead(.coinbase, at: Rounds.time(71).boottime)
                && rounds.tracker.book.newest(.coinbase)?.age == 0)
    }
}
