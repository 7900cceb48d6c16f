import ArgumentParser
import BTCPriceCore
import Testing

@testable import BTCCtl

/// The two parsers of btcctl must mean the same: whatever the fast one takes, ArgumentParser takes the same way.
@Suite struct InvocationTests {
    private func whole(_ arguments: [String]) -> Invocation? {
        do {
            return (try BTCCtlCommand.parseAsRoot(arguments) as? any InvocationCommand)?.invocation
        } catch {
            return nil
        }
    }

    private static let words = [
        "current", "watch", "--json", "--refresh", "--no-cache", "--max-age", "5", "--socket", "/x", "--help",
        "--version",
        "--", "-j", "--jso", "--socket=/x", "--max-age=5", "", "help",
    ]

    /// Every command line of up to four words.
    @Test func `both parsers agree on every short command line`() {
        var taken = 0
        var queue: [[String]] = [[]]
        for _ in 0..<4 {
            queue = queue.flatMap { line in Self.words.map { line + [$0] } }
            for line in queue where line.first == "current" || line.first == "watch" {
                guard let hot = Invocation(hotForm: line) else { continue }
                taken += 1
                #expect(whole(line) == hot, "\(line)")
            }
        }
        // current alone, with each of its three flags, two or three of them in any order but both policies; watch with and without.
        #expect(taken == 10)
    }

    @Test func `the forms in use all day are taken by the fast one`() {
        #expect(Invocation(hotForm: ["current"]) == .current(CurrentOptions()))
        #expect(Invocation(hotForm: ["current", "--json"]) == .current(CurrentOptions(json: true)))
        #expect(
            Invocation(hotForm: ["current", "--no-cache", "--json"])
                == .current(CurrentOptions(policy: .noCache, json: true)))
        #expect(Invocation(hotForm: ["watch", "--json"]) == .watch(WatchOptions(json: true)))
        #expect(Invocation(hotForm: []) == nil)
        #expect(Invocation(hotForm: ["current", "--refresh", "--no-cache"]) == nil)
        #expect(Invocation(hotForm: ["watch", "--refresh"]) == nil)
    }

    @Test func `the other forms are ArgumentParser's`() {
        #expect(
            whole(["current", "--socket", "/x", "--max-age", "1.5", "--refresh"])
                == .current(CurrentOptions(socket: "/x", policy: .remoteFirst, maxAge: .milliseconds(1500))))
        #expect(whole(["watch", "--socket=/x"]) == .watch(WatchOptions(socket: "/x")))
        for wrong in ["-1", "abc", "1e99", "nan", ""] {
            #expect(whole(["current", "--max-age", wrong]) == nil, "\(wrong)")
        }
        #expect(whole(["current", "--refresh", "--no-cache"]) == nil)
        #expect(whole(["dance"]) == nil)
    }
}
