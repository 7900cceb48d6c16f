import Dispatch
import Glibc
import NIOCore
import Synchronization
import Testing

@testable import BTCPriceNetworking

@Suite(.timeLimit(.minutes(3))) struct NameLookupTests {
    /// A resolver whose responses the test controls, and a clock.
    final class Resolver: Sendable {
        private let gate = DispatchSemaphore(value: 0)
        private let calls = Atomic<Int>(0)
        private let passed = Atomic<Int64>(0)
        private let start = ContinuousClock.now

        var callCount: Int { calls.load(ordering: .sequentiallyConsistent) }
        var now: ContinuousClock.Instant { start + .milliseconds(passed.load(ordering: .sequentiallyConsistent)) }
        func advance(_ milliseconds: Int64) { passed.add(milliseconds, ordering: .sequentiallyConsistent) }
        func answer() { gate.signal() }

        func lookUp() -> NameLookup.Outcome {
            calls.add(1, ordering: .sequentiallyConsistent)
            gate.wait()
            return .success([])
        }
        func hasBegun() async {
            while callCount == 0 { await Task.yield() }
        }
    }

    /// The result of a lookup: the addresses without a port, or the error's text.
    private func found(_ host: String, by names: NameLookup) async -> String {
        await withCheckedContinuation { continuation in
            names.addresses(of: host) { outcome in
                switch outcome {
                case .success(let addresses): continuation.resume(returning: "\(addresses.map { $0.ipAddress ?? "?" })")
                case .failure(.unresolved(let text)): continuation.resume(returning: text)
                case .failure(let error): continuation.resume(returning: "\(error)")
                }
            }
        }
    }

    @Test func `the system's resolver finds an address, or its error text is kept`() async throws {
        let names = NameLookup()
        #expect(await found("127.0.0.1", by: names) == #"["127.0.0.1"]"#)
        #expect(await found("::1", by: names) == #"["::1"]"#)
        #expect(await found("localhost", by: names).contains(#""127.0.0.1""#))
        // The resolver knows without a query that this is not a valid name.
        #expect(
            await found("no name.test", by: names) == "no name.test cannot be resolved: Name or service not known")
    }

    @Test func `all requests for a name share one lookup`() async throws {
        let resolver = Resolver()
        let names = NameLookup(lookUp: { _ in resolver.lookUp() }, now: { resolver.now })
        // All of them are pending before the first response.
        let answered = Atomic(0)
        for _ in 0..<20 { names.addresses(of: "slow.test") { _ in answered.add(1, ordering: .relaxed) } }
        await resolver.hasBegun()
        #expect(answered.load(ordering: .relaxed) == 0)
        resolver.answer()
        while answered.load(ordering: .relaxed) < 20 { await Task.yield() }
        #expect(resolver.callCount == 1)
    }

    @Test func `a silent name server is reported, and lookups do not pile up`() async throws {
        let resolver = Resolver()
        let names = NameLookup(lookUp: { _ in resolver.lookUp() }, now: { resolver.now })
        let first = Task { await found("silent.test", by: names) }
        await resolver.hasBegun()
        #expect(!names.isSilent(about: "silent.test"))
        resolver.advance(501)
        #expect(names.isSilent(about: "silent.test"))
        #expect(!names.isSilent(about: "another.test"))
        resolver.answer()
        #expect(await first.value == "[]")
        // The resolver responds again.
        #expect(!names.isSilent(about: "silent.test"))
        resolver.answer()
        #expect(await found("silent.test", by: names) == "[]")
        #expect(resolver.callCount == 2)
    }

    @Test func `after a suspend a name is looked up again, and the old lookup's result is dropped`() async throws {
        let calls = Atomic<Int>(0)
        let gates = (old: DispatchSemaphore(value: 0), new: DispatchSemaphore(value: 0))
        let isOver = Atomic<Bool>(false)
        let names = NameLookup(lookUp: { _ in
            if calls.add(1, ordering: .sequentiallyConsistent).newValue > 1 {
                gates.new.wait()
                return .failure(.unresolved("the new one"))
            }
            gates.old.wait()
            isOver.store(true, ordering: .sequentiallyConsistent)
            return .failure(.unresolved("the old one"))
        })
        let first = Task { await found("moved.test", by: names) }
        while calls.load(ordering: .sequentiallyConsistent) < 1 { await Task.yield() }
        names.restart()
        while calls.load(ordering: .sequentiallyConsistent) < 2 { await Task.yield() }
        // The old lookup ends first.
        gates.old.signal()
        while !isOver.load(ordering: .sequentiallyConsistent) { await Task.yield() }
        gates.new.signal()
        #expect(await first.value == "the new one")
        // A name that nobody waits for is dropped without a lookup.
        names.restart()
        #expect(calls.load(ordering: .sequentiallyConsistent) == 2)
    }

    @Test func `a waiting lookup can be cancelled`() async throws {
        let resolver = Resolver()
        let names = NameLookup(lookUp: { _ in resolver.lookUp() }, now: { resolver.now })
        let first = Task { await found("silent.test", by: names) }
        await resolver.hasBegun()
        names.cancel()
        #expect(await first.value == "cancelled")
        resolver.answer()
    }
}
