import Glibc
import TestSupport
import Testing

@testable import BTCPriceCore

extension Rounds {
    /// USDT falls to 0.9 dollars within 210 seconds, and Kraken reports it.
    func leavePeg() {
        var value = 68_900.0
        for second in stride(from: 5.0, through: 600, by: 5) {
            value = max(62_010, value * 0.996)
            prices = [
                .binance: "68900.\(Int(second) % 90 + 10)", .kraken: alive(Int(value), second),
                .coinbase: "\(Int(value))",
            ]
            peg = "\(Int(value / 68_900 * 10_000))e-4"
            // Only these two are requested.
            _ = tick(at: second)
            observe(.kraken, at: second)
            observe(.coinbase, at: second)
        }
    }
}

/// The value of USDT, with what a USDT/USD market stated last.
private struct Peg {
    private var monitor = PegMonitor()
    private var stated: StatedRate?

    var rate: PegRate? { monitor.rate }
    func logs(at boottime: BootTime) -> [(log: Double, stater: String?)] { monitor.logs(beside: stated, at: boottime) }

    mutating func imply(_ log: Double, by venue: String, at boottime: BootTime) {
        monitor.imply(log, by: venue, beside: stated, at: boottime)
    }

    mutating func state(_ value: Price, by venue: String, at boottime: BootTime) {
        stated = StatedRate(value, by: venue, after: stated, at: boottime)
        monitor.take(stated)
    }
}

@Suite struct PegMonitorTests {
    @Test
    func
        `near the peg the rate is the median of what the dollar markets imply, of two measurements the nearer to the peg`()
    {
        var peg = Peg()
        peg.imply(-0.005, by: "coinbase", at: 0)
        peg.imply(-0.001, by: "bitstamp", at: 1000)
        peg.imply(-0.002, by: "kraken", at: 2000)
        #expect(peg.rate?.value == price("0.998002"))
        #expect(peg.rate?.sources == ["bitstamp", "coinbase", "kraken"])
        #expect(peg.rate?.isOffPeg == false)
        // One outlier of each kind changes nothing.
        for (index, source) in ["coinbase", "bitstamp", "kraken"].enumerated() {
            peg.imply(0, by: source, at: 30_000 + Int64(index))
            peg.imply(-0.2, by: source, at: 60_000 + Int64(index))
        }
        #expect(peg.rate?.value == 1)
    }

    @Test func `bitcoin markets alone never prove that USDT has left its peg`() {
        var peg = Peg()
        for second in 0..<600 { peg.imply(-0.3, by: "coinbase", at: .boot + Int64(second) * 1000) }
        #expect(peg.rate == nil)
        #expect(peg.logs(at: 600_000).map(\.log) == [0])
        // A USDT/USD market is accepted if it reports that the peg holds, or the rate that they imply.
        var holding = peg
        holding.state(price("0.9996"), by: "kraken", at: 600_000)
        #expect(holding.rate?.value == price("0.9996"))
        #expect(holding.rate?.isOffPeg == false)
        peg.state(price("0.7408"), by: "kraken", at: 600_000)
        #expect(peg.rate?.isOffPeg == true)
        #expect(peg.rate?.sources == ["kraken", "coinbase"])
        // A USDT/USD market with a rate that no bitcoin market implies is not accepted.
        var lone = Peg()
        for second in 0..<10 { lone.imply(0, by: "coinbase", at: .boot + Int64(second) * 10_000) }
        lone.state(price("0.9"), by: "kraken", at: 100_000)
        lone.state(price("0.9"), by: "kraken", at: 110_000)
        #expect(lone.rate?.value == 1)
    }

    @Test func `off the peg from 1 percent on, back below 0_8`() {
        var peg = Peg()
        func say(_ log: Double, _ at: BootTime) {
            for at in [at, at + 10_000] {
                peg.imply(log, by: "coinbase", at: at)
                peg.state(Price(Int64((exp(log) * 1e8).rounded()), scale: 8), by: "kraken", at: at)
            }
        }
        say(-0.0099, 0)
        #expect(peg.rate?.isOffPeg == false)
        say(-0.0101, 20_000)
        #expect(peg.rate?.isOffPeg == true)
        say(-0.0085, 60_000)
        #expect(peg.rate?.isOffPeg == true)
        say(-0.0079, 80_000)
        #expect(peg.rate?.isOffPeg == false)
    }

    @Test
    func `a warning while USDT is off its peg, and the exact product`() throws {
        let warning = Rounds()
        warning.leavePeg()
        warning.prices = [.binance: "68950"]
        _ = warning.tick(at: 602)
        #expect(warning.tracker.state.standing.warning?.contains("a price in USDT") == true)
        #expect(warning.tracker.state.standing.isInDoubt)
        let converting = Rounds(rules: SelectionRules(peg: .convert))
        converting.leavePeg()
        converting.prices = [.binance: "68950"]
        let decision = try #require(converting.tick(at: 602))
        let conversion = try #require(decision.conversion)
        #expect(conversion.value == 68_950)
        #expect(converting.tracker.state.standing.isInDoubt == (decision.confirmation == .unconfirmed))
        #expect(conversion.sources.first == "kraken")
        #expect(decision.quote?.value == conversion.value * conversion.rate)
    }
}
