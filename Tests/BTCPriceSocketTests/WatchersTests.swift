import TestSupport
import Testing

@testable import BTCPriceSocket

@Suite struct WatchersTests {
    /// Watchers come and go between the slices of a fan-out. Each one that was present at the start and at the end was served
    /// exactly once.
    @Test(arguments: 0..<300) func `no watcher is missed or served twice`(seed: Int) {
        var random = SeededGenerator(seed: seed)
        var watchers = Watchers()
        var there: Set<Int32> = []
        for descriptor in 0..<Int32.random(in: 0...40, using: &random) {
            watchers.enter(descriptor)
            there.insert(descriptor)
        }
        for _ in 0..<5 {
            watchers.beginFanOut()
            var expected = there
            var served: [Int32] = []
            while let descriptor = watchers.nextToServe() {
                served.append(descriptor)
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let other = Int32.random(in: 0...60, using: &random)
                    if there.contains(other) {
                        let left = watchers.leave(other) != nil
                        #expect(left)
                        there.remove(other)
                        expected.remove(other)
                    } else {
                        let left = watchers.leave(other) != nil
                        #expect(!left)
                        if Bool.random(using: &random) {
                            watchers.enter(other)
                            there.insert(other)
                        }
                    }
                }
            }
            #expect(watchers.count == there.count, "seed \(seed)")
            for descriptor in expected {
                #expect(served.filter { $0 == descriptor }.count == 1, "seed \(seed)")
            }
        }
    }

    @Test func `without changes every watcher is served once, in order`() {
        var watchers = Watchers()
        for descriptor in [5, 3, 9] as [Int32] { watchers.enter(descriptor) }
        watchers.beginFanOut()
        var served: [Int32] = []
        while let descriptor = watchers.nextToServe() { served.append(descriptor) }
        #expect(served == [5, 3, 9])
        let end = watchers.nextToServe()
        #expect(end == nil)
    }

    @Test func `a served watcher that leaves does not affect the others`() {
        var watchers = Watchers()
        for descriptor in 0..<6 as Range<Int32> { watchers.enter(descriptor) }
        watchers.beginFanOut()
        for _ in 0..<3 { _ = watchers.nextToServe() }
        _ = watchers.leave(0)
        _ = watchers.leave(4)
        var rest: Set<Int32> = []
        while let descriptor = watchers.nextToServe() { rest.insert(descriptor) }
        #expect(rest == [3, 5])
    }
}
