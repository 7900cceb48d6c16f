/// Who is to be woken when, as a pure value.
///
/// A handful: the ticker, the observer, and the hedge of a fetch that is under way.
struct Sleepers<Waker> {
    typealias Instant = ContinuousClock.Instant

    private struct Sleeper {
        let id: UInt64
        let deadline: Instant
        let latest: Instant
        let waker: Waker
    }

    private var sleepers: [Sleeper] = []

    /// The latest moment at which somebody must be woken; `nil` where nobody sleeps.
    var next: Instant? {
        var next: Instant?
        for sleeper in sleepers where next.map({ sleeper.latest < $0 }) ?? true { next = sleeper.latest }
        return next
    }

    /// - Parameters:
    ///   - id: Another one for each.
    ///   - deadline: Not to be woken before.
    ///   - latest: Not to be woken after.
    mutating func lieDown(_ id: UInt64, until deadline: Instant, latest: Instant, _ waker: Waker) {
        sleepers.append(Sleeper(id: id, deadline: deadline, latest: max(deadline, latest), waker: waker))
    }

    /// Somebody will not be woken by the time; `nil` where he has been.
    mutating func remove(_ id: UInt64) -> Waker? {
        sleepers.firstIndex { $0.id == id }.map { sleepers.remove(at: $0).waker }
    }

    /// All who may be woken by now, the one with the earliest deadline first.
    mutating func due(_ now: Instant) -> [Waker] {
        let due = sleepers.filter { $0.deadline <= now }
        sleepers.removeAll { $0.deadline <= now }
        return due.sorted { $0.deadline < $1.deadline }.map(\.waker)
    }
}
