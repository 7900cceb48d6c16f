import BTCPriceCore
import BTCPriceNetworking
import Glibc
import TestSupport

/// Random numbers from 0 to 1. The same seed gives the same numbers.
private func drawing(_ seed: UInt64) -> @Sendable () -> Double {
    let generator = Shared(SeededGenerator(seed: seed))
    return {
        var drawn = 0.0
        generator.update { drawn = .random(in: 0...1, using: &$0) }
        return drawn
    }
}

private func exchanges(
    _ clock: VirtualClock, seed: UInt64, calm: Duration, faults: (Exchange) -> [Fault]
) throws -> [VirtualExchange] {
    try Exchange.all.enumerated().map { index, exchange in
        try VirtualExchange(
            exchange, clock: clock, seed: seed &+ UInt64(index) &* 7919, faults: faults(exchange),
            calm: calm)
    }
}

/// The process's resident memory, KiB.
private func residentMemory() -> Int {
    guard let file = fopen("/proc/self/statm", "re") else { return 0 }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let text = String(decoding: bytes[..<fread(&bytes, 1, bytes.count, file)], as: UTF8.self)
    return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4 } ?? 0
}

private func report(_ tally: Tally, _ exchanges: [VirtualExchange]) {
    print("ticks \(tally.ticks) fresh \(tally.fresh) stale \(tally.stale) avoidable \(tally.avoidable)")
    print("skipped \(tally.skipped) latest \(tally.latest.wholeMilliseconds) ms")
    print("clients \(tally.clientAnswers)")
    for exchange in exchanges {
        let seen = exchange.seen
        print(
            "\(exchange.venue.name) \(exchange.isWithinLimits ? "within" : "OVER") \(exchange.counts); faults \(seen.faults), bans \(seen.bans), deepened \(seen.deepened)"
        )
    }
    print("lines \(tally.lines.count)")
}

/// Runs a week with all faults, for each source separately about every four hours, with a restart each day, and with clients that
/// request the newest price fifty times a second during one minute of every hour.
func rehearseWeek(seed: UInt64, days: Int, clock: VirtualClock) async throws {
    let exchanges = try exchanges(clock, seed: seed, calm: .seconds(14_400)) { _ in Fault.allCases }
    let store = MemoryStore()
    let tally = Shared(Tally())
    let jitter = drawing(seed ^ 0xFFFF)
    for day in 0..<days {
        let daemon = await VirtualDaemon(
            [VirtualCurrency(loaders: exchanges)], clock: clock, store: store, jitter: jitter, tally: tally)
        for _ in 0..<24 {
            for _ in 0..<3000 {
                let isAnswered = await daemon.refresh()
                if isAnswered { tally.update { $0.clientAnswers += 1 } }
                try await clock.sleep(until: clock.now.advanced(by: .milliseconds(20)))
            }
            let hour = clock.offset.components.seconds / 3600 + 1
            try await clock.sleep(until: clock.instant(at: .seconds(hour * 3600)))
        }
        await daemon.stop()
        print("day \(day + 1) memory \(residentMemory()) KiB lines \(tally.current.lines.count)")
    }
    report(tally.current, exchanges)
}

/// Runs a day with the same faults throughout.
func rehearseDay(
    seed: UInt64, clock: VirtualClock, faults: (Exchange) -> [Fault], calm: Duration
) async throws {
    let exchanges = try exchanges(clock, seed: seed, calm: calm, faults: faults)
    try await runDay(exchanges, seed: seed, clock: clock) { $0 }
}

/// Runs a day in which every second response of every source is an error.
func rehearseAlternation(seed: UInt64, clock: VirtualClock) async throws {
    let exchanges = try exchanges(clock, seed: seed, calm: .seconds(1 << 40)) { _ in [] }
    try await runDay(exchanges, seed: seed, clock: clock) { exchange in
        let asks = Counter()
        return SetLoader(exchange.venue, exchange.market) { () throws(PriceLoadingError) in
            let prices = try await exchange.load()
            asks.add()
            if asks.count % 2 == 0 { throw .unavailable("HTTP 502") }
            return prices
        }
    }
}

private func runDay(
    _ exchanges: [VirtualExchange], seed: UInt64, clock: VirtualClock, loader: (VirtualExchange) -> any PriceLoader
) async throws {
    let tally = Shared(Tally())
    let daemon = await VirtualDaemon(
        [VirtualCurrency(loaders: exchanges.map(loader))], clock: clock, store: MemoryStore(), jitter: drawing(seed),
        tally: tally)
    try await clock.sleep(until: clock.instant(at: .seconds(86_400)))
    await daemon.stop()
    report(tally.current, exchanges)
    for line in tally.current.lines { print("| \(line)") }
}
