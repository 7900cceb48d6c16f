import BTCPriceCore
import BTCPriceSocket

/// A command that tells of a firing, until it has ended well.
struct Delivery: Sendable, Hashable, JSONMessage {
    struct Variable: Sendable, Hashable, JSONMessage {
        var name = ""
        var value = ""

        static var blank: Variable { Variable() }

        mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
            try fields.required("name", &name, .text)
            try fields.required("value", &value, .text)
        }
    }

    /// See ``Firing/id``.
    var id = ""
    /// The alert, whose command is the one of the file when it runs.
    var alert = ""
    var variables: [Variable] = []
    /// When the alert fired.
    var fired = Timestamp(milliseconds: 0)
    /// How often the command has failed, and when it runs again.
    var failures: Int64 = 0
    var due: Timestamp?

    static var blank: Delivery { Delivery() }

    mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("id", &id, .text)
        try fields.required("alert", &alert, .text)
        try fields.required("variables", &variables, .list(.message))
        try fields.required("fired", &fired, .time)
        try fields.required("failures", &failures, .integer.only { $0 >= 0 })
        try fields.optional("due", &due, .time)
    }
}

/// The commands that wait, run or are tried again. A pure value.
struct DeliveryQueue: Sendable {
    enum Bounds {
        /// After how long a command that failed runs again.
        static let retries: [Int64] = [5_000, 30_000, 120_000]
        /// A command that runs for longer is killed.
        static let longest: Int64 = 60_000
        /// What an alert says is no longer true after this time: the command is not run any more.
        static let oldest: Int64 = 600_000
        /// How many commands run at once.
        static let parallel = 8
        /// How many commands wait at most.
        static let most = 1_500
    }

    /// What became of a command.
    enum Outcome: Sendable, Hashable {
        case done
        case retry(after: Int64)
        case givenUp
    }

    private struct Entry {
        var delivery: Delivery
        /// When it was due first, by this boot's clock.
        let fired: BootTime
        var due: BootTime
        var isRunning = false
    }

    private var entries: [Entry] = []

    var pending: [Delivery] { entries.map(\.delivery) }
    var isEmpty: Bool { entries.isEmpty }

    /// - Returns: False if too many wait already.
    mutating func add(_ delivery: Delivery, at now: ObservationTime) -> Bool {
        guard entries.count < Bounds.most else { return false }
        let age = max(0, now.wall.milliseconds - delivery.fired.milliseconds)
        let wait = delivery.due.map { $0.milliseconds - now.wall.milliseconds } ?? 0
        entries.append(
            Entry(
                delivery: delivery, fired: now.boottime - age,
                due: now.boottime + min(max(0, wait), Bounds.retries.max() ?? 0)))
        return true
    }

    /// The commands to run now, and those that have become too old.
    mutating func next(at now: BootTime) -> (start: [Delivery], tooOld: [Delivery]) {
        let isOld = { (entry: Entry) in !entry.isRunning && now - entry.fired > Bounds.oldest }
        let tooOld = entries.filter(isOld).map(\.delivery)
        if !tooOld.isEmpty { entries.removeAll(where: isOld) }
        var room = Bounds.parallel - entries.count(where: \.isRunning)
        var start: [Delivery] = []
        for index in entries.indices where room > 0 && !entries[index].isRunning && entries[index].due <= now {
            entries[index].isRunning = true
            start.append(entries[index].delivery)
            room -= 1
        }
        return (start, tooOld)
    }

    /// A command has ended, or could not be started.
    mutating func end(_ id: String, isWell: Bool, at now: ObservationTime) -> Outcome {
        guard let index = entries.firstIndex(where: { $0.delivery.id == id }) else { return .done }
        let failures = Int(entries[index].delivery.failures)
        guard !isWell, failures < Bounds.retries.count else {
            entries.remove(at: index)
            return isWell ? .done : .givenUp
        }
        entries[index].delivery.failures += 1
        entries[index].isRunning = false
        entries[index].due = now.boottime + Bounds.retries[failures]
        entries[index].delivery.due = now.advanced(by: .milliseconds(Bounds.retries[failures])).wall
        return .retry(after: Bounds.retries[failures])
    }
}
