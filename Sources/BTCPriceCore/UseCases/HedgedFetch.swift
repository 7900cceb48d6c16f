/// One hedged fetch as a pure value: who is asked when, and whose answer counts.
///
/// - The sources are asked in order. The next one is asked when the one before fails, or after its `hedge` of silence.
/// - A source that has not answered within its `timeout` has failed. What it answers later is taken where nobody else has an
///   answer: a late price is better than none.
/// - An earlier source goes before a later one: a later one's answer is held until every earlier source has failed or run
///   out of time. So the primary still wins within its time, and the price does not hop between venues with every hedge.
/// - At the budget's end the held answer is taken, or the fetch fails.
///
/// It returns what to do and does nothing itself. Every input takes the present instant, so it needs no clock; an instant is how long it
/// is since the fetch began.
struct HedgedFetch<Answer: Sendable>: Sendable {
    typealias Instant = Duration

    /// The waits that a source is granted.
    struct Patience: Sendable {
        /// From asking to giving up.
        var timeout: Duration
        /// From asking to asking the next one too.
        var hedge: Duration
    }

    enum Action {
        /// Ask the source of this index.
        case ask(Int)
        /// Call ``timerFired(now:)`` at this instant. A later one replaces it; one that fires in vain does no harm.
        case wake(at: Instant)
        /// It is over. No action follows.
        case finish(Result)
    }

    enum Result {
        case answered(Int, Answer, failures: [(index: Int, error: PriceLoadingError)])
        case failed([(index: Int, error: PriceLoadingError)])
        case cancelled
    }

    private enum Slot: Sendable {
        case waiting
        case asked(at: Instant)
        case answered(Answer)
        case failed(PriceLoadingError)
        /// Its time is over, and it may answer all the same.
        case overdue
        case late(Answer)
        /// Its turn did not come before the budget was over, or it must not be asked after all.
        case skipped
    }

    private let patience: [Patience]
    private let deadline: Instant
    private var slots: [Slot]
    private var nextWake: Instant?
    private var isOver = false

    /// - Parameters:
    ///   - patience: One for each source, in their order.
    ///   - deadline: The end of the budget.
    init(patience: [Patience], deadline: Instant) {
        self.patience = patience
        self.deadline = deadline
        self.slots = patience.map { _ in .waiting }
    }

    mutating func start(now: Instant) -> [Action] {
        advance(now: now)
    }

    mutating func answered(_ index: Int, _ answer: Answer, now: Instant) -> [Action] {
        guard deadline >= now else { return advance(now: now) }
        switch slots[index] {
        // An answer that comes with the last instant of the source's time is in time.
        case .asked(let at) where at + patience[index].timeout >= now: slots[index] = .answered(answer)
        case .asked, .overdue: slots[index] = .late(answer)
        default: break
        }
        return advance(now: now)
    }

    mutating func failed(_ index: Int, _ error: PriceLoadingError, now: Instant) -> [Action] {
        if error == .cancelled { return finish(.cancelled) }
        switch slots[index] {
        case .asked: slots[index] = .failed(error)
        case .overdue: slots[index] = .failed(.timedOut(after: patience[index].timeout))
        default: break
        }
        return advance(now: now)
    }

    /// A source that was to be asked is not: the next one's turn is now.
    mutating func skipped(_ index: Int, now: Instant) -> [Action] {
        if case .asked = slots[index] { slots[index] = .skipped }
        return advance(now: now)
    }

    mutating func timerFired(now: Instant) -> [Action] {
        advance(now: now)
    }

    mutating func cancelled() -> [Action] {
        finish(.cancelled)
    }

    private mutating func finish(_ result: Result) -> [Action] {
        guard !isOver else { return [] }
        isOver = true
        return [.finish(result)]
    }

    private mutating func advance(now: Instant) -> [Action] {
        guard !isOver else { return [] }
        giveUpOnTheSilent(now: now)

        var failures: [(index: Int, error: PriceLoadingError)] = []
        var someoneEarlierMayStillAnswer = false
        var late: (index: Int, answer: Answer)?
        var someoneIsOverdue = false
        for (index, slot) in slots.enumerated() {
            switch slot {
            case .failed(let error):
                failures.append((index, error))
            case .overdue:
                failures.append((index, .timedOut(after: patience[index].timeout)))
                someoneIsOverdue = true
            case .late(let answer):
                failures.append((index, .timedOut(after: patience[index].timeout)))
                late = late ?? (index, answer)
            case .skipped: break
            case .answered(let answer) where !someoneEarlierMayStillAnswer:
                return finish(.answered(index, answer, failures: failures))
            case .waiting, .asked, .answered:
                someoneEarlierMayStillAnswer = true
            }
        }
        if !someoneEarlierMayStillAnswer || now >= deadline {
            if let late {
                return finish(.answered(late.index, late.answer, failures: failures.filter { $0.index != late.index }))
            }
            if !someoneIsOverdue || now >= deadline { return finish(.failed(failures)) }
        }

        var actions: [Action] = []
        if let index = nextToAsk(now: now) {
            slots[index] = .asked(at: now)
            actions.append(.ask(index))
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
            guard case .asked(let at) = slot else { continue }
            if now >= at + patience[index].timeout {
                slots[index] = .overdue
            } else if now >= deadline {
                slots[index] = .failed(.timedOut(after: nil))
            }
        }
        // What was never asked does not stand in the way of a held answer once the time is over.
        if now >= deadline {
            for index in slots.indices {
                if case .waiting = slots[index] { slots[index] = .skipped }
            }
        }
    }

    /// The first source not asked yet, if it is its turn.
    private func nextToAsk(now: Instant) -> Int? {
        var turn = true
        for (index, slot) in slots.enumerated() {
            switch slot {
            case .waiting: return turn ? index : nil
            case .failed, .skipped, .overdue, .late: turn = true
            case .answered: return nil
            case .asked(let at): turn = now >= at + patience[index].hedge
            }
        }
        return nil
    }

    /// The next instant at which silence alone changes something.
    private func earliestWake() -> Instant {
        var wake = deadline
        var lastAsked: (index: Int, at: Instant)?
        for (index, slot) in slots.enumerated() {
            guard case .asked(let at) = slot else { continue }
            wake = min(wake, at + patience[index].timeout)
            lastAsked = (index, at)
        }
        if let last = lastAsked, last.index + 1 < slots.count, case .waiting = slots[last.index + 1] {
            wake = min(wake, last.at + patience[last.index].hedge)
        }
        return wake
    }
}
