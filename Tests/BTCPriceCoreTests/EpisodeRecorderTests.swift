import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

/// Keeps episodes in memory, the newest form of each.
private final class MemoryEpisodes: EpisodeArchive {
    private let known = Mutex<[Episode]>([])

    var all: [Episode] { known.withLock(\.self) }

    func note(_ episodes: [Episode]) {
        known.withLock { known in
            for episode in episodes {
                known.removeAll { $0.subject == episode.subject && $0.start == episode.start }
                known.append(episode)
            }
        }
    }
}

@Suite struct EpisodeRecorderTests {
    private let outage = Episode.Subject(.outage, .usd)
    private let failed = Episode.Subject(.failed, .usd, source: "kraken")

    @Test func `a failure that is too short to be told takes no earlier one with it`() {
        var log = EpisodeLog()
        for span in [0..<10, 200..<201] as [Range<Int64>] {
            log.goesOn(failed, at: span.lowerBound)
            log.ended(failed, at: span.upperBound)
        }
        #expect(log.takeChanged(at: 201) == [Episode(failed, start: 0, end: 10)])
        #expect(log.takeChanged(at: 202) == [])
    }

    @Test func `an episode has a begin, an end and the farthest distance`() {
        var log = EpisodeLog()
        let outvoted = Episode.Subject(.outvoted, .usd, source: "binance")
        log.goesOn(outvoted, worst: 30_000, at: 100)
        #expect(log.takeChanged(at: 100) == [Episode(outvoted, start: 100, worst: 30_000)])
        log.goesOn(outvoted, worst: 20_000, at: 101)
        #expect(log.takeChanged(at: 101) == [], "nothing that a reader does not know")
        log.goesOn(outvoted, worst: 41_000, at: 102)
        log.ended(outvoted, at: 110)
        #expect(log.takeChanged(at: 110) == [Episode(outvoted, start: 100, end: 110, worst: 41_000)])
        log.ended(outvoted, at: 120)
        #expect(log.takeChanged(at: 120) == [])
    }

    @Test func `what begins again within a minute goes on`() {
        var log = EpisodeLog()
        for (begin, end) in [(0, 5), (60, 61), (121, 130), (191, 200)] as [(Int64, Int64)] {
            log.goesOn(outage, at: begin)
            log.ended(outage, at: end)
        }
        #expect(
            log.takeChanged(at: 200) == [
                Episode(outage, start: 0, end: 130, count: 3), Episode(outage, start: 191, end: 200),
            ])
    }

    @Test func `a single short failure is not told, and two are`() {
        var log = EpisodeLog()
        log.goesOn(failed, at: 0)
        #expect(log.takeChanged(at: 4) == [] && log.hasChanged)
        log.ended(failed, at: 4)
        #expect(log.takeChanged(at: 100) == [] && !log.hasChanged)
        log.goesOn(failed, at: 30)
        log.ended(failed, at: 31)
        #expect(log.takeChanged(at: 31) == [Episode(failed, start: 0, end: 31, count: 2)])
        log.goesOn(failed, at: 200)
        #expect(log.takeChanged(at: 205) == [Episode(failed, start: 200)], "it is told while it goes on")
    }

    @Test func `short failures that are not told do not use up the day`() {
        var log = EpisodeLog()
        for second in stride(from: Int64(0), to: 86_400, by: 600) {
            log.goesOn(failed, at: second)
            log.ended(failed, at: second + 1)
            #expect(log.takeChanged(at: second + 1) == [])
        }
    }

    @Test func `what is about a source or a currency that has gone is over`() {
        var log = EpisodeLog()
        let gone = [
            Episode.Subject(.limited, .usd, source: "gemini"), Episode.Subject(.outage, .eur),
            // It is always derived now.
            Episode.Subject(.outage, .chf),
        ]
        let kept = [outage, Episode.Subject(.limited, .usd, source: "kraken"), Episode.Subject(.clock)]
        for subject in gone + kept { log.goesOn(subject, at: 0) }
        log.keep(only: [.usd: ["kraken"], .chf: []], at: 30)
        #expect(Set(log.current) == Set(kept))
    }

    @Test func `nothing is told before the time is known, and then it is told under the right one`() {
        let archive = MemoryEpisodes()
        let clock = TestClockOfSeconds()
        let isSettled = Atomic<Bool>(false)
        let ahead = Atomic<Int64>(0)
        let recorder = EpisodeRecorder(
            archive: archive,
            reading: {
                let now = clock.now
                let wall = now.wall.milliseconds + ahead.load(ordering: .relaxed) * 1000
                return (
                    ObservationTime(wall: Timestamp(milliseconds: wall), boottime: now.boottime),
                    isSettled.load(ordering: .relaxed)
                )
            })
        recorder.report(.becameStale(failure: "x", quote: nil, currency: .usd), of: .usd)
        recorder.reloaded()
        clock.second.withLock { $0 = 20 }
        #expect(archive.all == [])
        // The machine's clock was three days behind.
        ahead.store(259_200, ordering: .relaxed)
        isSettled.store(true, ordering: .relaxed)
        recorder.receive(.empty(), .tick, isFirst: true, kept: nil)
        clock.second.withLock { $0 = 25 }
        let quote = PriceQuote(
            value: 68_000, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance", market: "BTC/USDT"
        )
        recorder.report(.becameFresh(quote, failedTicks: 25), of: .usd)
        let found = archive.all.sorted { $0.subject.kind.rawValue < $1.subject.kind.rawValue }
        #expect(
            found == [
                Episode(.init(.outage, .usd), start: 259_200, end: 259_225),
                Episode(.init(.reload), start: 259_200, end: 259_200),
            ])
    }

    @Test func `a week of flapping gives at most a hundred a day`() {
        var log = EpisodeLog()
        var told: [Int64: Episode] = [:]
        var writes = 0
        for second in stride(from: Int64(0), to: 7 * 86_400, by: 70) {
            log.goesOn(outage, at: second)
            log.ended(outage, at: second + 5)
            for episode in log.takeChanged(at: second + 5) {
                told[episode.start] = episode
                writes += 1
            }
        }
        #expect(told.count == 700)
        #expect(told.values.map(\.count).reduce(0, +) == 8640, "each of them is counted")
        #expect(told.values.allSatisfy { $0.end != nil })
        print("a week of flapping every 70 s: \(told.count) rows, \(writes) changes")
    }

    @Test func `a clock that is set back makes no negative episode`() {
        var log = EpisodeLog()
        log.goesOn(outage, at: 1000)
        log.ended(outage, at: 900)
        #expect(log.takeChanged(at: 900) == [Episode(outage, start: 1000, end: 1000)])
        log.goesOn(outage, at: 910)
        #expect(log.takeChanged(at: 910) == [Episode(outage, start: 910)])
    }

    @Test func `the events of the engine become episodes of their currency and source`() {
        let archive = MemoryEpisodes()
        let clock = TestClockOfSeconds()
        let recorder = EpisodeRecorder(archive: archive, reading: { (clock.now, true) })
        func at(_ second: Int64, _ event: PriceEvent, _ currency: Currency? = .usd) {
            clock.second.withLock { $0 = second }
            recorder.report(event, of: currency)
        }
        func fails(_ source: String, _ error: PriceLoadingError, cooldown: Bool = true) -> PriceEvent {
            .sourceFailed(
                SourceFailure(
                    source: source, error: error,
                    cooldown: cooldown
                        ? SourceCooldown(reason: error, since: clock.now, until: clock.now, consecutiveFailures: 1)
                        : nil))
        }
        let quote = PriceQuote(
            value: 68_000, currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance", market: "BTC/USDT"
        )
        func shows(_ second: Int64, isInDoubt: Bool) {
            clock.second.withLock { $0 = second }
            var state = PriceState.empty()
            state.ticks.freshness = .fresh
            state.standing.isInDoubt = isInDoubt
            recorder.receive(state, .tick, isFirst: true, kept: nil)
        }
        func peg(_ value: Price) -> PegRate {
            PegRate(value: value, sources: ["kraken"], measuredBoottime: .boot, isOffPeg: true)
        }
        at(10, .becameStale(failure: "x", quote: quote, currency: .usd))
        at(25, .becameFresh(quote, failedTicks: 15))
        at(30, fails("kraken", .timedOut(after: nil)), .eur)
        at(40, fails("kraken", .rateLimited("429", retryAfter: nil)), .eur)
        at(50, .sourceRecovered("kraken"), .eur)
        at(60, fails("bitstamp", .implausible("outvoted"), cooldown: false))
        at(70, .outvoted(["bitstamp": 30_200, "gemini": 9000], .usd))
        at(71, .outvoted(["bitstamp": 30_500], .usd))
        at(72, fails("bitstamp", .implausible("outvoted")))
        at(75, .outvoted([:], .usd))
        at(80, .clockDiffers(ClockDifference(milliseconds: -7_200_000, venues: 3, known: 4)), nil)
        at(90, .clockAgrees, nil)
        at(95, .jumped(31_000, .usd))
        at(96, .offPeg(peg(Price(97, scale: 2))), nil)
        at(97, .offPeg(peg(Price(95, scale: 2))), nil)
        at(98, .offPeg(nil), nil)
        shows(100, isInDoubt: true)
        shows(104, isInDoubt: true)
        shows(110, isInDoubt: false)
        // As of a first price.
        shows(200, isInDoubt: true)
        shows(201, isInDoubt: false)
        recorder.reloaded()
        recorder.close()
        let found = archive.all.sorted { ($0.start, $0.subject.source ?? "") < ($1.start, $1.subject.source ?? "") }
        #expect(
            found == [
                Episode(.init(.outage, .usd), start: 10, end: 25),
                Episode(.init(.failed, .eur, source: "kraken"), start: 30, end: 40),
                Episode(.init(.limited, .eur, source: "kraken"), start: 40, end: 50),
                Episode(.init(.outvoted, .usd, source: "bitstamp"), start: 70, end: 75, worst: 30_500),
                Episode(.init(.outvoted, .usd, source: "gemini"), start: 70, end: 71, worst: 9000),
                Episode(.init(.clock), start: 80, end: 90, worst: 7_200_000),
                Episode(.init(.jump, .usd), start: 95, end: 95, worst: 31_000),
                Episode(.init(.peg), start: 96, end: 98, worst: 50_000),
                Episode(.init(.doubt, .usd), start: 100, end: 110),
                Episode(.init(.reload), start: 201, end: 201),
            ])
    }
}

/// A clock whose second a test sets.
private final class TestClockOfSeconds: Sendable {
    let second = Mutex<Int64>(0)
    var now: ObservationTime {
        let second = second.withLock(\.self)
        return ObservationTime(wall: Timestamp(milliseconds: second * 1000), boottime: .boot + second * 1000)
    }
}
