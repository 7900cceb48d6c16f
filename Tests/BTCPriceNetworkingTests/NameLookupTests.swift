import BTCPriceCore
import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BTCPriceNetworking

@Suite struct NameLookupTests {
    /// A resolver that answers when it is told to, and a clock.
    final class Resolver: Sendable {
        private let gate = DispatchSemaphore(value: 0)
        private let calls = Atomic<Int>(0)
        private let passed = Atomic<Int64>(0)
        private let start = ContinuousClock.now

        var callCount: Int { calls.load(ordering: .sequentiallyConsistent) }
        var now: ContinuousClock.Instant { start + .milliseconds(passed.load(ordering: .sequentiallyConsistent)) }
        func advance(_ milliseconds: Int64) { passed.add(milliseconds, ordering: .sequentiallyConsistent) }
        func answer() { gate.signal() }

        func lookUp(_ code: Int32) -> Int32 {
            calls.add(1, ordering: .sequentiallyConsistent)
            gate.wait()
            return code
        }
        func hasBegun() async {
            while callCount == 0 { await Task.yield() }
        }
    }

    @Test func `a name that can be resolved is passed, one that can't is said with the system's word`() async throws {
        let lookup = NameLookup(lookUp: { $0 == "good.test" ? 0 : EAI_NONAME })
        try await lookup.resolve("good.test")
        await #expect(
            throws: PriceLoadingError.unreachable("bad.test cannot be resolved: Name or service not known")
        ) { try await lookup.resolve("bad.test") }
    }

    @Test func `all who ask for a name share one look-up of it`() async throws {
        let resolver = Resolver()
        let lookup = NameLookup(lookUp: { _ in resolver.lookUp(0) }, now: { resolver.now })
        let first = Task { try await lookup.resolve("slow.test") }
        await resolver.hasBegun()
        let others = (0..<20).map { _ in Task { try await lookup.resolve("slow.test") } }
        // The first to leave takes nothing from the others.
        first.cancel()
        await #expect(throws: PriceLoadingError.cancelled) { try await first.value }
        resolver.answer()
        for other in others { try await other.value }
        // One that came only now has a look-up of its own.
        #expect(resolver.callCount <= 2)
        resolver.answer()
    }

    @Test func `where no name server answers, whoever comes later is told at once, and nothing piles up`() async throws
    {
        let resolver = Resolver()
        let lookup = NameLookup(lookUp: { _ in resolver.lookUp(0) }, now: { resolver.now })
        let first = Task { try await lookup.resolve("silent.test") }
        await resolver.hasBegun()
        resolver.advance(501)
        for _ in 0..<100 {
            await #expect(throws: PriceLoadingError.unreachable("no name server answers for silent.test")) {
                try await lookup.resolve("silent.test")
            }
        }
        #expect(resolver.callCount == 1)
        resolver.answer()
        try await first.value
        // It answers again.
        resolver.answer()
        try await lookup.resolve("silent.test")
        #expect(resolver.callCount == 2)
    }

    @Test func `a caller that was cancelled before it came asks nobody to wait`() async throws {
        let lookup = NameLookup(lookUp: { _ in 0 })
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await lookup.resolve("any.test")
        }
        task.cancel()
        await #expect(throws: PriceLoadingError.cancelled) { try await task.value }
    }
}
