import TestSupport
import Testing

@testable import BTCPriceCore

@Suite struct FetchFailureTests {
    private static let refused = PriceLoadingError.unreachable("Connection refused")

    private func failure(
        _ errors: [PriceLoadingError], resting: [PriceLoadingError] = [], limited: Int = 1,
        lastFailure: PriceLoadingError? = nil
    ) -> String {
        let present = ObservationTime(wall: Timestamp(milliseconds: 0), boottime: 0)
        return FetchFailure(
            failures: errors.map { SourceFailure(source: "a", error: $0) },
            skipped: resting.map { error in
                let cooldown = SourceCooldown(reason: error, since: present, until: present, consecutiveFailures: 3)
                return Skipped(source: "b", reason: .cooldown(cooldown))
            } + Array(repeating: Skipped(source: "c", reason: .limit, lastFailure: lastFailure), count: limited)
        ).description
    }

    @Test func `sources with the same failure have one diagnosis, which includes a cooldown with this reason`() {
        let diagnosis = "No exchange can be reached (Connection refused): is the network up?"
        #expect(failure([Self.refused, Self.refused]) == diagnosis)
        #expect(failure([Self.refused], resting: [Self.refused]) == diagnosis)
        #expect(failure([], resting: [Self.refused, Self.refused], limited: 0) == diagnosis)
        // Nothing is known about the third source.
        #expect(failure([], resting: [Self.refused, Self.refused]) != diagnosis)
        #expect(failure([], resting: [Self.refused, Self.refused], lastFailure: .unavailable("HTTP 502")) != diagnosis)
        // It failed in the same way, and waits only for its limit.
        #expect(failure([], resting: [Self.refused, Self.refused], lastFailure: Self.refused) == diagnosis)
        #expect(failure([], resting: [Self.refused], lastFailure: Self.refused) == diagnosis)
        #expect(
            failure([.unreachable("x", cause: .name), .unreachable("y", cause: .name)]).contains(
                "names cannot be resolved"))
    }

    @Test func `a single source and sources with different failures are listed`() {
        for text in [
            failure([Self.refused]), failure([Self.refused, .unavailable("HTTP 502")]),
            failure([Self.refused, .unreachable("no route")]), failure([Self.refused], resting: [.refused("key")]),
        ] {
            #expect(text.hasPrefix("a: not reached: Connection refused; "), "\(text)")
        }
    }
}
