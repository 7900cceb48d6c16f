import BTCPriceCore
import Logging
import Synchronization
import TestSupport
import Testing

@testable import BTCPriceDaemon

struct LineLogHandler: LogHandler {
    let log: Log<String>
    var logLevel: Logger.Level = .info
    var text: @Sendable (LogEvent) -> String = { "\($0.level): \($0.message)" }
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { log.add(text(event)) }
}

@Suite struct ReportingTests {
    private let log = Log<String>()
    private let quote = PriceQuote(
        value: Price("68901.23") ?? 0, currency: "USD",
        timestamp: Timestamp(milliseconds: 1_724_596_200_000),
        source: "binance", market: "BTC/USDT")

    private func reporter(at time: TimeBox) -> Reporter {
        let log = log
        return Reporter(logger: Logger(label: "t") { _ in LineLogHandler(log: log) }) { time.now }
    }

    final class TimeBox: Sendable {
        private let milliseconds = Atomic<Int64>(0)
        var now: ObservationTime {
            ObservationTime(wall: Timestamp(milliseconds: 0), boottime: .boot + milliseconds.load(ordering: .relaxed))
        }
        func advance(_ duration: Duration) { milliseconds.add(duration.wholeMilliseconds, ordering: .relaxed) }
    }

    @Test func `a recovery is logged with the number of failed ticks`() {
        reporter(at: TimeBox()).report(.becameFresh(quote, failedTicks: 1))
        #expect(
            log.all == [
                "notice: The price is current again after 1 failed tick: 68901.23 USD, from binance (BTC/USDT)."
            ])
    }

    /// A source that fails once a second for a virtual day, in two ways.
    @Test func `a day of failures gives a few lines with counts`() {
        let time = TimeBox()
        let reporter = reporter(at: time)
        for second in 0..<86_400 {
            let error =
                second % 3 == 0 ? PriceLoadingError.timedOut(after: .milliseconds(800)) : .unavailable("HTTP 502")
            reporter.report(.sourceFailed(SourceFailure(source: "binance", error: error)))
            time.advance(.seconds(1))
        }
        // At once, after ten minutes, and after two hours more.
        #expect(
            log.all == [
                "warning: binance gave no price: no response within 800 ms",
                "warning: binance gave no price: no response within 800 ms (599 more in 10 min: unavailable 400, timed-out 199)",
                "warning: binance gave no price: no response within 800 ms (7199 more in 2 h: unavailable 4800, timed-out 2399)",
            ])
    }

    /// Two against two, 20 s of every minute.
    @Test func `a day of doubts gives a few lines with counts`() {
        let time = TimeBox()
        let reporter = reporter(at: time)
        for _ in 0..<1440 {
            reporter.report(.contradicted(warning: "binance (70000) contradicts kraken (68900)", quote))
            time.advance(.seconds(20))
            reporter.report(.contradictionEnded(quote, after: .seconds(20)))
            time.advance(.seconds(40))
        }
        let begin =
            "warning: The price is in doubt: binance (70000) contradicts kraken (68900). Shown is 68901.23 USD, from binance (BTC/USDT)."
        let end = "notice: The price is no longer contradicted, after 20 s: 68901.23 USD, from binance (BTC/USDT)."
        #expect(
            log.all == ["", " (9 more in 10 min)", " (119 more in 2 h)"].flatMap { ["\(begin)\($0)", "\(end)\($0)"] })
    }

    @Test func `a permanent refusal is logged once, with a daily reminder`() {
        let time = TimeBox()
        let reporter = reporter(at: time)
        let now = time.now
        let cooldown = SourceCooldown(
            reason: .refused("HTTP 451"), since: now,
            until: ObservationTime(wall: Timestamp(milliseconds: 86_400_000), boottime: 86_400_000),
            consecutiveFailures: 1)
        for _ in 0..<(3 * 24) {
            reporter.report(
                .sourceFailed(SourceFailure(source: "binance", error: .refused("HTTP 451"), cooldown: cooldown)))
            time.advance(.seconds(3600))
        }
        let line =
            "warning: binance gave no price: refused: HTTP 451; it has a cooldown until 1970-01-02 00:00:00 UTC"
        #expect(log.all == [line, "\(line) (23 more in 24 h)", "\(line) (23 more in 24 h)"])
    }

    @Test func `a state that lasts is logged after ten minutes, whatever was left out before`() {
        let time = TimeBox()
        let reporter = reporter(at: time)
        func pass(minutes: Int) {
            for _ in 0..<minutes {
                time.advance(.seconds(60))
                reporter.report(.ticked(1, lateness: .zero, skipped: 0))
            }
        }
        func fail(minutes: Int) {
            reporter.report(.becameStale(failure: "x", quote: quote))
            pass(minutes: minutes)
            reporter.report(.becameFresh(quote, failedTicks: 9))
        }
        // The first and the third time are logged, the others left out.
        for _ in 0..<4 {
            fail(minutes: 2)
            pass(minutes: 5)
        }
        #expect(log.all.count == 4)
        // The last recovery was left out, too.
        pass(minutes: 20)
        #expect(log.all.count == 5 && log.all.last?.hasSuffix("from binance (BTC/USDT). (for 10 min)") == true)
        fail(minutes: 9)
        pass(minutes: 9)
        #expect(log.all.count == 5)
        reporter.report(.becameStale(failure: "x", quote: quote))
        pass(minutes: 12 * 60)
        #expect(
            log.all.dropFirst(5) == [
                "warning: Failed to update value. Displaying last updated value from 2024-08-25 14:30:00 UTC: x (for 10 min)"
            ])
    }

    @Test(arguments: [nil, "binance", "kraken"])
    func `a source that goes on failing is logged after ten minutes, unless it is no longer kept`(kept: String?) {
        let time = TimeBox()
        let reporter = reporter(at: time)
        let failure = SourceFailure(source: "binance", error: .unavailable("a"))
        // Each minute a failure and a recovery, until both are logged once a day.
        for minute in 0..<600 {
            time.advance(.seconds(60))
            reporter.report(.ticked(1, lateness: .zero, skipped: 0))
            if minute % 2 == 0 {
                reporter.report(.sourceFailed(failure))
            } else {
                reporter.report(.sourceRecovered("binance"))
            }
        }
        let before = log.all.count
        reporter.report(.sourceFailed(failure))
        if let kept { reporter.report(.kept([.usd: [kept]])) }
        for _ in 0..<3600 {
            time.advance(.seconds(1))
            if kept != "kraken" { reporter.report(.sourceFailed(failure)) }
            reporter.report(.ticked(1, lateness: .zero, skipped: 0))
        }
        #expect(
            log.all.dropFirst(before)
                == (kept == "kraken" ? [] : ["warning: binance gave no price: not available: a (for 10 min)"]),
            "once, although it fails each second")
    }

    @Test func `prices that are not believed are logged beside failures to get one, and each is a kind`() {
        let reporter = reporter(at: TimeBox())
        for error in [
            PriceLoadingError.unreachable("a"), .timedOut(after: nil), .unavailable("b"), .implausible("c"),
            .implausible("d"), .staleData("e"), .invalidData("f"), .refused("g"),
        ] {
            reporter.report(.sourceFailed(SourceFailure(source: "binance", error: error)))
        }
        #expect(
            log.all
                == ["not reached: a", "implausible: c", "stale response: e", "invalid response: f", "refused: g"].map {
                    "warning: binance gave no price: \($0)"
                })
    }

    @Test func `each currency without a price is logged, and whether rates were ever received`() {
        let reporter = reporter(at: TimeBox())
        for currency in [Currency.usd, .eur] {
            reporter.report(.becameStale(failure: "x", quote: nil, currency: currency))
        }
        #expect(log.all.count == 2)
        for isHeld in [true, false] {
            reporter.report(.ratesFailed(isHeld ? "ecb" : "cnb", .unavailable("b"), held: isHeld))
        }
        #expect(
            log.all.suffix(2) == [
                "warning: ecb gave no reference rates: not available: b. Rates received before are used until they are 8 days old.",
                "warning: cnb gave no reference rates: not available: b. None were received before.",
            ])
    }

    @Test func `a kind of line without an event for long is logged at once`() {
        let time = TimeBox()
        let reporter = reporter(at: time)
        func fail() { reporter.report(.sourceFailed(SourceFailure(source: "binance", error: .unavailable("a")))) }
        for _ in 0..<3 {
            fail()
            time.advance(.seconds(60))
            fail()
            time.advance(.seconds(6 * 3600))
        }
        let line = "warning: binance gave no price: not available: a"
        #expect(log.all == [line, "\(line) (1 more in 6 h)", "\(line) (1 more in 6 h)"])
    }

    @Test func `another source and another kind are not held back`() {
        let reporter = reporter(at: TimeBox())
        for (source, error) in [
            ("binance", PriceLoadingError.unavailable("a")), ("coinbase", .unavailable("a")),
            ("binance", .refused("b")), ("binance", .refused("c")), ("binance", .rateLimited("d", retryAfter: nil)),
        ] {
            reporter.report(.sourceFailed(SourceFailure(source: source, error: error)))
        }
        #expect(log.all.count == 4)
    }

    @Test func `ticks are logged only at debug level`() {
        reporter(at: TimeBox()).report(.ticked(5, lateness: .microseconds(1214), skipped: 0))
        #expect(log.all.isEmpty)
        var logger = Logger(label: "t") { [log] _ in LineLogHandler(log: log) }
        logger.logLevel = .debug
        Reporter(logger: logger) { .now() }.report(PriceEvent.ticked(5, lateness: .microseconds(1214), skipped: 0))
        #expect(log.all == ["debug: tick 5 began 1.214 ms late, 0 skipped before it"])
    }

    @Test func `the status line has the time of the observation`() {
        var state = PriceState(
            tick: 1, freshness: .fresh, quote: quote, observedBoottime: 0, confirmation: .single, failure: nil)
        #expect(StatusLine.text(state) == "68901.23 USD from binance at 2024-08-25 14:30:00 UTC")
        state.ticks.freshness = .stale
        state.ticks.failure = "binance: no response within 800 ms"
        #expect(
            StatusLine.text(state)
                == "Stale, last value 68901.23 USD from binance at 2024-08-25 14:30:00 UTC: binance: no response within 800 ms"
        )
        #expect(StatusLine.text(.empty()) == "No price yet: the first tick is running")
        state.ticks.failure = PriceState.pausedFailure
        let last = "Stale, last value 68901.23 USD from binance at 2024-08-25 14:30:00 UTC"
        for (ticking, text) in [
            (Ticking.paused, "paused by a user until 'btcctl resume'"), (.idle, "idle until a program reads the price"),
            (.running, "paused"),
        ] {
            state.ticks.ticking = ticking
            #expect(StatusLine.text(state) == "\(last): \(text)")
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a daemon is alive if it makes progress or is paused`(loopHasAnswered: Bool, isPaused: Bool) {
        for (silence, isTicking) in [(Duration.zero, true), (.seconds(3), true), (.milliseconds(3001), false)] {
            let signs = SignsOfLife(
                loopHasAnswered: loopHasAnswered, tickerSilence: silence, longestSilence: .seconds(3),
                isPaused: isPaused)
            #expect(signs.isAlive == (loopHasAnswered && (isPaused || isTicking)))
        }
    }
}
