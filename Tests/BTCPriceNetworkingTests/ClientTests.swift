import BTCPriceCore
import ExchangeSimulator
import FoundationEssentials
import TestSupport
import Testing

@testable import BTCPriceNetworking

/// The shipped HTTP client and loaders against a real server.
@Suite(.timeLimit(.minutes(3))) struct ClientTests {
    struct Setup {
        let simulator: Simulator
        let loop: TickLoop
        let client: ExchangeClient

        init(faults: String = "", connectTimeout: Duration = .seconds(11)) async throws {
            simulator = try await Simulator.start(feed: PriceSeries(walkSeed: 1), script: FaultScript(faults))
            loop = TickLoop()
            client = try ExchangeClient(
                HTTPTransportSettings(userAgent: "btc-priced/test", connectTimeout: connectTimeout), on: loop)
        }

        func loader(_ name: String, key: String? = "k") throws -> any PriceLoader {
            let exchange = try #require(Exchange.all.first { $0.name == name })
            let venue = try #require(VenueName(rawValue: name))
            let access = Exchange.Access(client: client, baseURL: simulator.url(of: venue), key: key)
            return try #require(exchange.loaders(access, for: [.usd]).first)
        }

        func end() async {
            await client.shutdown()
            await loop.shutDown()
            await simulator.stop()
        }
    }

    private func error(of loader: any PriceLoader) async -> PriceLoadingError? {
        do {
            _ = try await loader.load()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: Exchange.all.map(\.name))
    func `every exchange gets a valid request`(name: String) async throws {
        let setup = try await Setup()
        let loaded = try await setup.loader(name).load()[0]
        #expect(loaded.value > 1000)
        #expect(loaded.position.isEmpty == ["binance", "kraken"].contains(name))
        await setup.end()
    }

    @Test func `recorded prices are read to the last digit`() async throws {
        let simulator = try await Simulator.start(
            feed: PriceSeries(replaying: "close\n61828.02000000\n75500.99\n0.10000001\n12345678.12345678\n"))
        let loop = TickLoop()
        let client = try ExchangeClient(HTTPTransportSettings(userAgent: "btc-priced/test"), on: loop)
        let exchange = try #require(Exchange.all.first)
        let access = Exchange.Access(client: client, baseURL: simulator.url(of: .binance))
        let loader = try #require(exchange.loaders(access, for: [.usd]).first)
        var values: [String] = []
        for _ in 0..<5 { values.append(try await loader.load()[0].value.description) }
        #expect(values == ["61828.02", "75500.99", "0.10000001", "12345678.12345678", "12345678.12345678"])
        await client.shutdown()
        await loop.shutDown()
        await simulator.stop()
    }

    @Test func `an unknown host is reported`() async throws {
        let setup = try await Setup()
        let exchange = try #require(Exchange.all.first)
        let access = Exchange.Access(client: setup.client, baseURL: "http://does-not-exist.invalid")
        let loader = try #require(exchange.loaders(access, for: [.usd]).first)
        // If the name server does not respond, the connection fails instead.
        #expect(await error(of: loader)?.kind == "unreachable")
        await setup.end()
    }

    @Test func `an endless body is not read to its end`() async throws {
        let long = String(repeating: "x", count: 100_000)
        let setup = try await Setup(faults: "binance always status 200 body \(long)")
        #expect(await error(of: try setup.loader("binance")) == .invalidData("more than 65536 bytes"))
        await setup.end()
    }

    @Test(arguments: ["stall-body", "dark", "delay 60s"])
    func `a caller's cancellation ends head and body alike, and is not a failure`(fault: String) async throws {
        // With this timeout, only the cancellation can end the request in time.
        let setup = try await Setup(faults: "binance always \(fault)", connectTimeout: .seconds(600))
        let loader = try setup.loader("binance")
        let task = Task { await error(of: loader) }
        // The request is pending once the server has received it.
        while setup.simulator.requests(of: .binance) == 0 { await Task.yield() }
        task.cancel()
        #expect(await task.value == .cancelled)
        await setup.end()
    }

    @Test func `one deadline applies to head and body`() async throws {
        let setup = try await Setup(faults: "binance always stall-body", connectTimeout: .seconds(600))
        let clock = setup.loop.clock
        let source = FetchLatestPrice(
            loader: try setup.loader("binance"), address: "", timeout: .milliseconds(150), hedge: .milliseconds(50))
        let engine = PriceEngine(
            [CurrencyPlan(.usd, [source], interval: .seconds(1))], clock: clock, budget: .seconds(6),
            now: { .now() }, subscribers: [], report: { _ in })
        var failure: FetchFailure?
        do throws(FetchFailure) { _ = try await engine.refresh() } catch { failure = error }
        #expect(failure?.failures == [SourceFailure(source: "binance", error: .timedOut(after: .milliseconds(150)))])
        await setup.end()
    }

    @Test func `a connection that stops responding costs one request, not the next`() async throws {
        let setup = try await Setup(faults: "binance request 2 dark")
        let loader = try setup.loader("binance")
        _ = try await loader.load()
        let task = Task { await error(of: loader) }
        while setup.simulator.requests(of: .binance) < 2 { await Task.yield() }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(try await loader.load()[0].value > 1000)
        await setup.end()
    }

    @Test func `a trial ends if there is no response`() async throws {
        let setup = try await Setup(faults: "binance always dark", connectTimeout: .seconds(600))
        let (exchange, clock) = (try #require(Exchange.all.first { $0.name == "binance" }), TestClock())
        let access = Exchange.Access(client: setup.client, baseURL: setup.simulator.url(of: .binance))
        let task = Task { await ExchangeTrial(exchange, access, on: clock) }
        await clock.run(to: .seconds(10))
        let trial = await task.value
        #expect(!trial.isGood)
        #expect(trial.lines.count == 2 && trial.lines.last == "no response within 10000 ms", "\(trial.lines)")
        await setup.end()
    }

    @Test func `a file without certificates is reported`() async throws {
        let loop = TickLoop()
        #expect(throws: TrustAnchorsError.self) {
            try ExchangeClient(HTTPTransportSettings(userAgent: "x", caFile: "/etc/hostname"), on: loop)
        }
        await loop.shutDown()
    }
}
