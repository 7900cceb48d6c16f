import Synchronization
import TestSupport
import Testing

@testable import BTCPriceCore

@Suite(.timeLimit(.minutes(3))) struct SharedRequestTests {
    private final class Time: Sendable {
        let seconds = Mutex(0.0)
    }

    /// A request whose response and clock a test sets.
    private final class Setup: Sendable {
        let loader = ScriptedLoader("kraken")
        let time = Time()
        let request: SharedRequest

        init() {
            let (loader, time) = (loader, time)
            request = SharedRequest(
                cacheTime: .seconds(2), now: { Rounds.time(time.seconds.withLock { $0 }) },
                request: {
                    () throws(PriceLoadingError) in try await loader.load()
                })
        }

        func load(after boottime: BootTime = .min) -> Task<String, Never> {
            Task {
                do throws(PriceLoadingError) {
                    return try await request.load(after: boottime)[0].value.description
                } catch {
                    return error.kind
                }
            }
        }
    }

    @Test func `a caller during a pending request gets its response, and a caller soon after it gets the same one`()
        async throws
    {
        let setup = Setup()
        #expect(setup.request.isNeeded(after: .min))
        let first = setup.load()
        await setup.loader.isAsked()
        #expect(!setup.request.isNeeded(after: .min))
        let second = setup.load()
        setup.loader.answer("68900")
        #expect(await first.value == "68900")
        #expect(await second.value == "68900")
        setup.time.seconds.withLock { $0 = 1.9 }
        #expect(await setup.load().value == "68900")
        #expect(setup.loader.asks == 1)
        let prices = try await setup.request.load(after: .min)
        #expect(prices[0].observed == Rounds.time(0), "it is as old as it is")
        // But not a caller that has this response, and not once the venue has a new one.
        #expect(setup.request.isNeeded(after: Rounds.time(0).boottime))
        setup.time.seconds.withLock { $0 = 2 }
        #expect(setup.request.isNeeded(after: .min))
    }

    @Test func `after a closed connection, a caller may begin the next request at once`() async {
        let setup = Setup()
        let first = setup.load()
        await setup.loader.isAsked()
        setup.loader.fail(.connectionClosed)
        #expect(await first.value == "unreachable")
        #expect(setup.request.isNeeded(after: .min))
    }

    @Test func `the request ends when the last caller leaves, and the next caller starts a new one`() async {
        let setup = Setup()
        let first = setup.load()
        await setup.loader.isAsked()
        first.cancel()
        #expect(await first.value == "cancelled")
        #expect(setup.request.isNeeded(after: .min), "which counts")
        let second = setup.load()
        await setup.loader.isAsked()
        setup.loader.answer("68900")
        #expect(await second.value == "68900")
        #expect(setup.loader.asks == 2)
    }

    @Test func `a request that began without a caller is the next caller's`() async {
        let setup = Setup()
        setup.request.begin()
        await setup.loader.isAsked()
        #expect(!setup.request.isNeeded(after: .min))
        let first = setup.load()
        setup.request.begin()
        setup.loader.answer("68900")
        #expect(await first.value == "68900")
        #expect(setup.loader.asks == 1)
    }

    @Test func `an error is shared for a moment, and is not kept`() async {
        let setup = Setup()
        let first = setup.load()
        await setup.loader.isAsked()
        setup.loader.fail()
        #expect(await first.value == "unavailable")
        #expect(await setup.load().value == "unavailable")
        #expect(setup.loader.asks == 1)
        setup.time.seconds.withLock { $0 = 0.1 }
        #expect(setup.request.isNeeded(after: .min))
    }
}
