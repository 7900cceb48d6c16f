import BTCPriceCore
import BTCPricePersistence
import FoundationEssentials
import Glibc
import TestSupport

/// Runs days with a tick per second through the shipped core and the shipped store, with occasional outages.
/// - Parameters:
///   - days: The number of days.
///   - path: A file for one line per tick: the second, the price or `-`, and the day's first, highest and lowest price and change.
func rehearseHistory(days: Int, seed: UInt64, path: String?, clock: VirtualClock) async throws {
    let folder = TemporaryDirectory()
    let now = VirtualDaemon.time(of: clock)
    let historyClock = HistoryClock.confirmed(now)
    let store = HistoryStore(
        directory: folder.path, settings: .init(), clock: historyClock, report: { print("history: \($0)") })
    let history = PriceHistory(store: store, clock: historyClock)
    store.open(unstored: { history.unstored(of: $0) }, restored: { _, _ in })
    store.waitForDisk()
    let course = Shared((generator: SeededGenerator(seed: seed), cents: Int64(6_890_000), outage: 0.0..<0.0))
    let venue = try ScriptedVenue("coinbase", clock: clock) { seconds, _ in
        var answer = VenueAnswer.hangs
        course.update { course in
            // Outages of minutes or hours, every few hours.
            if Int.random(in: 0..<80_000, using: &course.generator) == 0 {
                course.outage = seconds..<seconds + Double.random(in: 30...20_000, using: &course.generator)
            }
            course.cents += .random(in: -1500...1500, using: &course.generator)
            // One outage always occurs.
            let isOut = course.outage.contains(seconds) || (40_000..<43_000).contains(seconds)
            answer =
                isOut
                ? .fails(.unavailable("HTTP 503")) : .marked(Double(course.cents) / 100, mark(seconds))
        }
        return answer
    }
    let lines = Shared("")
    let written = bytesWritten()
    let tally = Shared(Tally())
    let daemon = await VirtualDaemon(
        [VirtualCurrency(loaders: [venue])], clock: clock, store: MemoryStore(nil), tally: tally,
        history: history
    ) { state in
        let second = now().wall.milliseconds / 1000
        // Disk access takes real time: the writes of a minute must end before the next one.
        if second % 60 <= 1 { store.waitForDisk() }
        guard path != nil else { return }
        let value = state.freshness == .fresh ? state.quote?.value.description : nil
        let price = value.map { state.standing.isInDoubt ? "\($0)?" : $0 }
        let day = state.day.map { "\($0.open) \($0.high) \($0.low) \($0.change)" } ?? "-"
        lines.update { $0 += "\(second) \(price ?? "-") \(day)\n" }
    }
    try await clock.sleep(until: clock.instant(at: .seconds(days * 86_400)))
    await daemon.stop()
    history.close()
    store.close()
    let file = "\(folder.path)/\(HistoryStore.fileName)"
    var status = stat()
    stat(file, &status)
    let bytes = (bytesWritten() - written) / Int64(days)
    if let path { try Data(lines.current.utf8).write(to: URL(filePath: path)) }
    if let copy = getenv("KEEP_HISTORY") {
        try Data(contentsOf: URL(filePath: file)).write(to: URL(filePath: String(cString: copy)))
    }
    print("ticks \(tally.current.ticks) fresh \(tally.current.fresh) failure \(store.failure?.description ?? "none")")
    print("file \(status.st_size) bytes, written \(bytes) bytes a day")
}

/// Runs a quarter of an hour with an outage, a start in the middle of a minute and a crash of 7 % while all sources refuse. Prints the true
/// price of each second, also of those after it.
/// - Parameter path: Where the history is copied to.
func rehearseMoments(seed: UInt64, path: String, clock: VirtualClock) async throws {
    let (folder, now) = (TemporaryDirectory(), VirtualDaemon.time(of: clock))
    // Whole minutes, so that the spans below begin in the middle of one.
    try await clock.sleep(until: clock.instant(at: .seconds((clock.seconds / 60).rounded(.up) * 60)))
    let begun = clock.seconds
    var generator = SeededGenerator(seed: seed)
    var cents = 6_890_000.0
    let truth = (0..<1000).map { second in
        // The crash goes on while nobody sees it.
        cents *= 1 + Double.random(in: -0.0002...0.0002, using: &generator) - ((706..<776).contains(second) ? 0.001 : 0)
        return cents.rounded() / 100
    }
    let outages = [264..<335, 706..<776]
    let venues = try ["coinbase", "bitstamp"].map { name in
        try ScriptedVenue(name, clock: clock) { seconds, _ in
            let second = max(0, min(truth.count - 1, Int(seconds - begun)))
            return outages.contains { $0.contains(second) }
                ? .fails(.unavailable("HTTP 503")) : .marked(truth[second], mark(seconds))
        }
    }
    let (kept, tally) = (MemoryStore(nil), Shared(Tally()))
    // The daemon is away from second 468 on, and is started in the middle of a minute.
    for end in [468.0, 900] {
        let historyClock = HistoryClock.confirmed(now)
        let store = HistoryStore(directory: folder.path, settings: .init(), clock: historyClock, report: { _ in })
        let history = PriceHistory(store: store, clock: historyClock)
        store.open(unstored: { history.unstored(of: $0) }, restored: { _, _ in })
        store.waitForDisk()
        let daemon = await VirtualDaemon(
            [VirtualCurrency(loaders: venues)], clock: clock, store: kept, tally: tally, history: history
        ) { _ in
            if (now().wall.milliseconds / 1000) % 60 <= 1 { store.waitForDisk() }
        }
        try await clock.sleep(until: clock.instant(at: .seconds(begun + end)))
        await daemon.stop()
        history.close()
        store.close()
        if end < 900 { try await clock.sleep(until: clock.instant(at: .seconds(begun + 563))) }
    }
    let file = "\(folder.path)/\(HistoryStore.fileName)"
    try Data(contentsOf: URL(filePath: file)).write(to: URL(filePath: path))
    for (second, price) in truth.enumerated() {
        print(VirtualDaemon.wallStart / 1000 + Int64(begun) + Int64(second), Price.cents(price))
    }
}

/// A feed position that advances with the seconds.
private func mark(_ seconds: Double) -> FeedPosition {
    FeedPosition(
        time: Timestamp(milliseconds: VirtualDaemon.wallStart + Int64(seconds * 1000)), sequence: Int64(seconds * 1000))
}

/// The bytes that this process has written to files (proc_pid_io(5)). The disk gets a whole page for each part of one.
private func bytesWritten() -> Int64 {
    guard let text = try? String(contentsOfFile: "/proc/self/io", encoding: .utf8),
        let line = text.split(separator: "\n").first(where: { $0.hasPrefix("wchar:") })
    else { return 0 }
    return Int64(line.dropFirst(7)) ?? 0
}
