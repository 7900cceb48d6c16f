import BTCPriceCore
import BTCPriceNetworking
import Synchronization

/// What a venue answers to one question.
enum VenueAnswer {
    case price(Double)
    case marked(Double, VenueMark)
    /// A price that was made at this time, in seconds.
    case madeAt(Double, Double)
    /// The venue's own time, made from the true milliseconds since 1970.
    case dated(Double, @Sendable (Int64) -> Int64)
    case fails(PriceLoadingError)
    case hangs
}

/// A virtual exchange that answers by a script.
final class ScriptedVenue: PriceLoader {
    /// - Parameters:
    ///   - seconds: The time.
    ///   - ask: Which question it is, from 0.
    typealias Script = @Sendable (_ seconds: Double, _ ask: Int) -> VenueAnswer

    let source: PriceSource
    private let clock: VirtualClock
    private let latency: Duration
    private let peg: @Sendable (Double) -> Double
    private let script: Script
    private let asks = Atomic(0)

    /// - Parameter peg: Dollars for one USDT, for a venue that tells it.
    init(
        _ name: String, clock: VirtualClock, latency: Duration = .milliseconds(40),
        peg: @escaping @Sendable (Double) -> Double = { _ in 1 }, script: @escaping Script
    ) throws {
        guard let exchange = Exchange.all.first(where: { $0.source.name == name }) else {
            throw VirtualExchange.Unknown(name: name)
        }
        source = exchange.source
        self.clock = clock
        self.latency = latency
        self.peg = peg
        self.script = script
    }

    func load() async throws(PriceLoadingError) -> LoadedPrice {
        let seconds = clock.now.seconds
        let answer = script(seconds, asks.add(1, ordering: .relaxed).oldValue)
        if case .hangs = answer {
            do { try await clock.sleep(until: clock.now.advanced(by: .seconds(3600))) } catch { throw .cancelled }
            throw .unreachable("reset")
        }
        do { try await clock.sleep(until: clock.now.advanced(by: latency)) } catch { throw .cancelled }
        switch answer {
        case .price(let value):
            return LoadedPrice(value: .cents(value), mark: ordinaryMark(seconds), tetherRate: tetherRate(seconds))
        case .marked(let value, let mark):
            return LoadedPrice(value: .cents(value), mark: mark, tetherRate: tetherRate(seconds))
        case .madeAt(let value, let then):
            return LoadedPrice(value: .cents(value), mark: ordinaryMark(then), tetherRate: tetherRate(seconds))
        case .dated(let value, let time):
            let milliseconds = time(VirtualDaemon.wallStart + Int64(seconds * 1000))
            return LoadedPrice(
                value: .cents(value), mark: VenueMark(time: Timestamp(milliseconds: milliseconds)),
                tetherRate: tetherRate(seconds))
        case .fails(let error): throw error
        case .hangs: throw .cancelled
        }
    }

    private func tetherRate(_ seconds: Double) -> Price? {
        source.tells.contains(.tetherRate) ? Price(Int64((peg(seconds) * 10_000).rounded()), scale: 4) : nil
    }

    private func ordinaryMark(_ seconds: Double) -> VenueMark {
        let milliseconds = VirtualDaemon.wallStart + Int64(seconds * 1000)
        return VenueMark(
            time: source.tells.contains(.time) ? Timestamp(milliseconds: milliseconds) : nil,
            trade: source.tells.contains(.trade) ? milliseconds : nil)
    }
}

extension Price {
    /// A price to the cent. Below zero and beyond an integer as they come.
    static func cents(_ value: Double) -> Price {
        abs(value) < 1e15 ? Price(Int64((value * 100).rounded()), scale: 2) : Price("\(value)") ?? 0
    }

    /// For comparing.
    var approximate: Double { double }
}

extension VirtualClock.Instant {
    var seconds: Double { Double(offset.wholeMilliseconds) / 1000 }
}
