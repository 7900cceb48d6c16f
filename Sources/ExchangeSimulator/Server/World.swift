import BTCPriceCore
import Glibc
import NIOCore
import Synchronization

/// The state that all connections share: the prices, the faults and the counts.
final class World: Sendable {
    enum Verdict {
        /// With the fault that changes how it is sent.
        case reply(VenueShape.Answer, FaultScript.Fault? = nil)
        case close
        case reset
        case dark
    }

    struct State {
        var feed: PriceSeries
        var script: FaultScript
        var scriptSince: ContinuousClock.Instant
        /// The number of the current script.
        var generation = 0
        /// The number of requests since the script was set.
        var numbers: [VenueName: Int] = [:]
        /// The number of requests since the script was set, by pair.
        var pairNumbers: [VenueName: [Pair: Int]] = [:]
        /// The number of requests for candles since the script was set.
        var candleNumbers: [VenueName: Int] = [:]
        var course = PriceCourse()
        /// The newest trade of each venue.
        var last: [VenueName: Trade] = [:]
        /// The number of upgrades since the script was set.
        var upgrades: [VenueName: Int] = [:]
        var streams: [VenueName: StreamCounter] = [:]
        /// The identifier of the newest stream.
        var streamID = 0
        /// The streams that have subscribed to something.
        var listeners: [Int: NIOLoopBound<StreamHandler>] = [:]
        /// Whether the market's timer is running.
        var isTrading = false
        var counters = Dictionary(uniqueKeysWithValues: VenueName.allCases.map { ($0, RequestCounter($0)) })

        /// The time since the script was set.
        var milliseconds: Int64 { scriptSince.duration(to: .now).wholeMilliseconds }
    }

    let state: Mutex<State>
    /// Held while a trade is sent to the streams, so that all of them get it or none.
    let sending = Mutex(())
    /// The number of trades per second while a stream listens.
    let tradesPerSecond: Double
    private let begun = ContinuousClock.now

    init(feed: PriceSeries, script: FaultScript, tradesPerSecond: Double) {
        self.tradesPerSecond = tradesPerSecond
        state = Mutex(State(feed: feed, script: script, scriptSince: .now))
    }

    func set(_ script: FaultScript) {
        sending.withLock { _ in
            state.withLock { state in
                state.script = script
                state.scriptSince = .now
                state.numbers = [:]
                state.pairNumbers = [:]
                state.candleNumbers = [:]
                state.upgrades = [:]
                state.generation += 1
            }
        }
    }

    func requests(of venue: VenueName) -> Int {
        state.withLock { $0.counters[venue]?.total ?? 0 }
    }

    /// The request counts of each venue, with its limits.
    var limits: String {
        state.withLock { state in
            VenueName.allCases.map { "\($0.rawValue) \(state.counters[$0]?.text ?? "")\n" }.joined()
        }
    }

    /// The price of the described exchanges in dollars.
    func dollars() -> String { state.withLock { $0.trade(for: .kraken).dollars } }

    func connectionFault(of venue: VenueName) -> FaultScript.Fault? {
        state.withLock { $0.script.connectionFault(for: venue, at: $0.milliseconds) }
    }

    func judge(_ request: VenueShape.Request, to venue: VenueName) -> Verdict {
        state.withLock { state in
            let shape = VenueShape(venue: venue)
            let second = Int64(time(nil))
            state.counters[venue]?.count(at: begun.duration(to: .now).wholeMilliseconds)
            let candles = shape.candles(of: request, now: second)
            let pairs = shape.pairs(of: request)
            if candles != nil {
                state.candleNumbers[venue, default: 0] += 1
            } else {
                state.numbers[venue, default: 0] += 1
                for pair in pairs { state.pairNumbers[venue, default: [:]][pair, default: 0] += 1 }
            }
            let numbers = candles == nil ? state.numbers : state.candleNumbers
            let counted = (numbers[venue, default: 0], state.pairNumbers[venue] ?? [:])
            let now = state.milliseconds
            let fault = state.script.fault(
                for: venue, request: counted.0, of: pairs, counted.1,
                scope: candles == nil ? .prices : .candles, at: now)
            if let fault, let verdict = Self.replacement(fault, uri: request.uri) { return verdict }
            if let candles {
                // Before the first price, the past ends at that.
                if !state.course.hasBegun {
                    var feed = state.feed
                    state.course.add(feed.next(), at: second)
                }
                let known = state.course.candles(in: candles.range, each: candles.seconds, now: second)
                return .reply(shape.answer(known, to: candles), fault)
            }
            if let refusal = shape.refusal(of: request) { return .reply(refusal) }
            var clock = 0
            if case .venueClock(let seconds)? = fault { clock = seconds }
            let trade = state.trade(for: venue)
            let prices = pairs.map { pair -> (Pair, String) in
                let price = pair.rate == 1 ? trade.dollars : PriceSeries.price(trade.dollars, times: pair.rate)
                // A fault of another pair's price does not apply to this pair.
                let own = state.script.fault(for: venue, request: counted.0, of: [pair], counted.1, at: now)
                guard case .price(let fixed, let factor) = own else { return (pair, price) }
                return (pair, fixed ?? PriceSeries.price(price, times: factor))
            }
            var tetherRate = "1.00010000"
            if case .tether(let rate)? = fault { tetherRate = rate }
            var answer = shape.answer(
                request, prices: prices, trade: trade, clockAhead: clock, tetherRate: tetherRate)
            if case .contentType(let type)? = fault { answer.headers.append(("Content-Type", type)) }
            return .reply(answer, fault)
        }
    }

    /// The verdict that replaces a response or an upgrade because of a fault; `nil` if the fault replaces nothing.
    static func replacement(_ fault: FaultScript.Fault, uri: String) -> Verdict? {
        switch fault {
        case .answer(let status, let retryAfter, let body):
            var answer = VenueShape.Answer(status: status, body: VenueShape.filled(body))
            if let retryAfter { answer.headers.append(("Retry-After", retryAfter.text)) }
            return .reply(answer)
        case .hugeBody(let length):
            return .reply(
                VenueShape.Answer(body: [UInt8](repeating: UInt8(ascii: " "), count: length)))
        case .bomb:
            return .reply(
                VenueShape.Answer(headers: [("Content-Encoding", "deflate")], body: Bomb.zlib(repeats: 38_000)))
        case .redirect:
            return .reply(VenueShape.Answer(status: 302, headers: [("Location", uri)], body: []))
        case .close: return .close
        case .reset, .refuse, .tlsAlert, .certificate: return .reset
        case .dark: return .dark
        default: return nil
        }
    }
}

extension World.State {
    /// The trade that a response shows: the newest one while streams listen, otherwise a new one.
    fileprivate mutating func trade(for venue: VenueName) -> Trade {
        let last = last[venue]
        if let last, !listeners.isEmpty { return last }
        let now = Trade.now()
        let trade = Trade(number: (last?.number ?? 0) + 1, dollars: feed.next(), nanoseconds: now)
        course.add(trade.dollars, at: now / 1_000_000_000)
        self.last[venue] = trade
        return trade
    }
}

/// Counts one venue's requests: the total, and the peak in the time span of each limit.
package struct RequestCounter: Sendable {
    package private(set) var total = 0
    private var windows: [Window]

    private struct Window: Sendable {
        let limit: (requests: Int, seconds: Int)
        /// The times within the span.
        var times: ArraySlice<Int64> = []
        var peak = 0
    }

    /// Counts against this venue's limits.
    package init(_ venue: VenueName) {
        windows = venue.limits.map { Window(limit: $0) }
    }

    /// - Parameter milliseconds: The arrival time on a monotonic clock.
    package mutating func count(at milliseconds: Int64) {
        total += 1
        for index in windows.indices {
            let start = milliseconds - Int64(windows[index].limit.seconds) * 1000
            windows[index].times = windows[index].times.drop { $0 <= start }
            windows[index].times.append(milliseconds)
            windows[index].peak = max(windows[index].peak, windows[index].times.count)
        }
    }

    /// `total 120, most in 60 s 61 of 3000`
    package var text: String {
        "total \(total)" + windows.map { ", most in \($0.limit.seconds) s \($0.peak) of \($0.limit.requests)" }.joined()
    }

    /// Whether the requests stayed within every limit.
    package var isWithinLimits: Bool { windows.allSatisfy { $0.peak <= $0.limit.requests } }
}

/// A small compressed body that expands to a large one: zeros in the zlib format (RFC 1950, RFC 1951).
enum Bomb {
    /// - Parameter repeats: How many runs of 258 zeros follow the first zero. Each run takes 13 bits.
    static func zlib(repeats: Int) -> [UInt8] {
        var bits = BitWriter()
        // The last block, with the fixed codes.
        bits.append(0b1, count: 1)
        bits.append(0b01, count: 2)
        bits.appendCode(0x30, count: 8)  // the literal 0
        for _ in 0..<repeats {
            bits.appendCode(0b1100_0101, count: 8)  // copy 258 bytes…
            bits.appendCode(0, count: 5)  // …from a distance of 1 byte
        }
        bits.appendCode(0, count: 7)  // the end
        // Adler-32 of zeros: the first sum stays 1, and the second is the number of bytes.
        let sums = UInt32((1 + repeats * 258) % 65_521) << 16 | 1
        return [0x78, 0x9C] + bits.bytes + (0..<4).map { UInt8(truncatingIfNeeded: sums >> (24 - 8 * $0)) }
    }

    private struct BitWriter {
        var bytes: [UInt8] = []
        private var used = 8

        mutating func append(_ value: Int, count: Int) {
            for index in 0..<count {
                if used == 8 {
                    bytes.append(0)
                    used = 0
                }
                bytes[bytes.count - 1] |= UInt8((value >> index) & 1) << used
                used += 1
            }
        }

        /// Appends a Huffman code, which is stored with its first bit first.
        mutating func appendCode(_ code: Int, count: Int) {
            for index in (0..<count).reversed() { append((code >> index) & 1, count: 1) }
        }
    }
}
