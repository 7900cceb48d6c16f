/// The plan of requests to several sources as a pure value: when each is requested, and which response counts.
///
/// - The sources are requested in order. The next one is requested if the one before fails, or after its `hedge` of silence.
/// - A source that has not responded within its `timeout` has failed. A later response counts if no other source has given a
///   price: a late price is better than none.
/// - An earlier source takes precedence over a later one: a later one's response is held until every earlier source has failed or run
///   out of time. So the primary still wins within its time, and the price does not switch between venues with every hedge.
/// - At the end of the budget the held response counts, or the fetch fails.
/// - If all are wanted, all are requested at once, and every response counts.
///
/// It returns what to do and does nothing itself. Every input takes the present instant, so it needs no clock; an instant is the time
/// since the fetch began.
struct PollPlan: Sendable {
    typealias Instant = Duration

    /// The waits that a source is granted.
    struct Patience: Sendable {
        /// The time from the request to giving up.
        var timeout: Duration
        /// The time from the request to the request of the next source.
        var hedge: Duration
    }

    enum Action {
        /// Request the source with this index.
        case request(Int)
        /// Call ``advance(now:)`` at this instant. A later wake replaces it; one that fires without need does no harm.
        case wake(at: Instant)
        /// The fetch is over. No action follows.
        case finish(Result)
    }

    enum Result {
        /// The sources whose responses count, in their order; and the failures of the sources before them.
        case answered([Int], failures: [(index: Int, error: PriceLoadingError)])
        case failed([(index: Int, error: PriceLoadingError)])
        case cancelled
    }

    private enum Slot: Sendable {
        case waiting
        case requested(at: Instant)
        case answered
        case failed(PriceLoadingError)
        /// Its time is over, but it may still respond.
        case overdue
        case late
        /// Its turn did not come before the budget was over, or it must not be requested after all.
        case skipped
    }

    private let patience: [Patience]
    private let deadline: Instant
    private let wantsAll: Bool
    private var slots: [Slot]
    private var nextWake: Instant?
    private var isOver = false

    /// - Parameters:
    ///   - patience: One for each source, in their order.
    ///   - deadline: The end of the budget.
    ///   - wantsAll: Whether all sources are requested at once.
    init(patience: [Patience], deadline: Instant, wantsAll: Bool = false) {
        self.patience = wantsAll ? patience.map { Patience(timeout: $0.timeout, hedge: .zero) } : patience
        let longest = patience.map(\.timeout).max() ?? deadline
        self.deadline = wantsAll ? min(deadline, longest) : deadline
        self.wantsAll = wantsAll
        self.slots = patience.map { _ in .waiting }
    }

    mutating func answered(_ index: Int, now: Instant) -> [Action] {
        guard deadline >= now else { return advance(now: now) }
        switch slots[index] {
        // A response at the last instant of the source's time is in time.
        case .requested(let at) where at + patience[index].timeout >= now: slots[index] = .answered
        case .requested, .overdue: slots[index] = .late
        default: break
        }
        return advance(now: now)
    }

    mutating func failed(_ index: Int, _ error: PriceLoadingError, now: Instant) -> [Action] {
        if error == .cancelled { return finish(.cancelled) }
        switch slots[index] {
        case .requested: slots[index] = .failed(error)
        case .overdue: slots[index] = .failed(.timedOut(after: patience[index].timeout))
        default: break
        }
        return advance(now: now)
    }

    /// Records that a source could not be requested after all: it is the next one's turn.
    mutating func skipped(_ index: Int, now: Instant) -> [Action] {
        if case .requested = slots[index] { slots[index] = .skipped }
        return advance(now: now)
    }

    mutating func cancelled() -> [Action] {
        finish(.cancelled)
    }

    private mutating func finish(_ result: Result) -> [Action] {
        guard !isOver else { return [] }
        isOver = true
        return [.finish(result)]
    }

    /// Starts the plan, or continues it after a wait.
    mutating func advance(now: Instant) -> [Action] {
        guard !isOver else { return [] }
        giveUpOnTheSilent(now: now)

        var failures: [(index: Int, error: PriceLoadingError)] = []
        var answered: [Int] = []
        var late: [Int] = []
        var anEarlierOneMayStillAnswer = false
        var oneIsOverdue = false
        for (index, slot) in slots.enumerated() {
            switch slot {
            case .failed(let error):
                failures.append((index, error))
            case .overdue:
                failures.append((index, .timedOut(after: patience[index].timeout)))
                oneIsOverdue = true
            case .late:
                failures.append((index, .timedOut(after: patience[index].timeout)))
                late.append(index)
            case .skipped: break
            case .answered where wantsAll: answered.append(index)
            case .answered where !anEarlierOneMayStillAnswer:
                return finish(.answered([index], failures: failures))
            case .waiting, .requested, .answered:
                anEarlierOneMayStillAnswer = true
            }
        }
        let hasPrice = !answered.isEmpty || !late.isEmpty
        if now >= deadline || (!anEarlierOneMayStillAnswer && (hasPrice || !oneIsOverdue)) {
            answered = wantsAll ? (answered + late).sorted() : Array(late.prefix(1))
            failures.removeAll { answered.contains($0.index) }
            return finish(answered.isEmpty ? .failed(failures) : .answered(answered, failures: failures))
        }

        var actions: [Action] = []
        while let index = nextToRequest(now: now) {
            slots[index] = .requested(at: now)
            actions.append(.request(index))
        }
        let wake = earliestWake()
        if wake != nextWake {
            nextWake = wake
            actions.append(.wake(at: wake))
        }
        return actions
    }

    private mutating func giveUpOnTheSilent(now: Instant) {
        for (index, slot) in slots.enumerated() {
            switch slot {
            case .requested(let at) where now >= at + patience[index].timeout: slots[index] = .overdue
            case .requested where now >= deadline: slots[index] = .failed(.timedOut(after: nil))
            // Once the time is over, a source that was never requested does not block a held response.
            case .waiting where now >= deadline: slots[index] = .skipped
            default: break
            }
        }
    }

    /// The first source not requested yet, if it is its turn.
    private func nextToRequest(now: Instant) -> Int? {
        var turn = true
        for (index, slot) in slots.enumerated() {
            switch slot {
            case .waiting: return turn ? index : nil
            case .failed, .skipped, .overdue, .late: turn = true
            case .answered: if !wantsAll { return nil }
            case .requested(let at): turn = now >= at + patience[index].hedge
            }
        }
        return nil
    }

    /// The next instant at which silence alone changes something.
    private func earliestWake() -> Instant {
        var wake = deadline
        var last: (index: Int, at: Instant)?
        for (index, slot) in slots.enumerated() {
            guard case .requested(let at) = slot else { continue }
            wake = min(wake, at + patience[index].timeout)
            last = (index, at)
        }
        if let last, last.index + 1 < slots.count, case .waiting = slots[last.index + 1] {
            wake = min(wake, last.at + patience[last.index].hedge)
        }
        return wake
    }
}
