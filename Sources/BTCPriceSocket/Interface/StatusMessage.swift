package import BTCPriceCore

/// The interface's `Status`: the daemon's status.
package struct StatusMessage: Sendable, Hashable {
    /// The ticks since the start.
    package struct Ticks: Sendable, Hashable {
        /// The time between two ticks, milliseconds.
        package var interval: Int64
        /// Finished ticks, including the failed ones.
        package var done: Int64
        /// Ticks that ended without a price.
        package var failed: Int64
        /// Ticks that did not start in time.
        package var skipped: Int64
        /// The results of the ticks that needed more than one market.
        package var validated: ValidatedTicks

        package init(
            interval: Int64, done: Int64, failed: Int64, skipped: Int64, validated: ValidatedTicks = ValidatedTicks()
        ) {
            self.interval = interval
            self.done = done
            self.failed = failed
            self.skipped = skipped
            self.validated = validated
        }
    }

    /// Where the last price is stored, and whether that works.
    package struct Store: Sendable, Hashable {
        /// The directory that keeps the price across a restart.
        package var runtimeDirectory: String
        /// The directory that keeps the price across a reboot.
        package var stateDirectory: String
        /// When it was last written to disk; `nil` if that is not known.
        package var synced: Timestamp?
        /// Why it can't be stored; `nil` while it can.
        package var failure: String?
        /// The candles of the history that are not on the disk yet; `nil` if no history is kept.
        package var heldCandles: Int64?
        /// Why the history can't be written; `nil` while it can.
        package var historyFailure: String?
        /// Why gaps of the history can't be filled with an exchange's candles; `nil` while they can.
        package var candleFailure: String?

        package init(
            runtimeDirectory: String, stateDirectory: String, synced: Timestamp?, failure: String?,
            heldCandles: Int64? = nil, historyFailure: String? = nil, candleFailure: String? = nil
        ) {
            self.runtimeDirectory = runtimeDirectory
            self.stateDirectory = stateDirectory
            self.synced = synced
            self.failure = failure
            self.heldCandles = heldCandles
            self.historyFailure = historyFailure
            self.candleFailure = candleFailure
        }
    }

    /// How this machine's clock compares with the sources' clocks.
    package struct Clock: Sendable, Hashable {
        package enum State: String, Sendable, Hashable, CaseIterable {
            case agrees
            case differs
            case unknown
        }

        package var state = State.unknown
        /// The sources' time minus this machine's, milliseconds; `nil` unless it differs.
        package var difference: Int64?
        /// The number of sources that agree on that time.
        package var sources: Int64?
        /// The number of sources whose time is known.
        package var known: Int64?

        package init(_ comparison: ClockComparison = .unknown) {
            switch comparison {
            case .unknown: break
            case .agrees: state = .agrees
            case .differs(let difference):
                (state, self.difference) = (.differs, difference.milliseconds)
                (sources, known) = (difference.venues, difference.known)
            }
        }
    }

    /// The reloads of the configuration since the start.
    package struct Reloads: Sendable, Hashable {
        package var begun: Int64 = 0
        /// Those that are over, refused ones included.
        package var done: Int64 = 0
        /// Why the last one was refused; `nil` if it was not.
        package var failure: String?

        package init() {}
    }

    package struct Clients: Sendable, Hashable {
        /// A limit, and how often it was hit since the start.
        package struct Limit: Sendable, Hashable {
            /// Its name, one of those in the interface's definition.
            package var name: String
            package var most: Int64
            /// How often a client exceeded it.
            package var hits: Int64

            package init(name: String, most: Int64, hits: Int64) {
                self.name = name
                self.most = most
                self.hits = hits
            }
        }

        /// Connections that are open.
        package var connections: Int64
        /// Users with open connections.
        package var users: Int64
        /// Connections that watch.
        package var watchers: Int64
        /// Calls since the start.
        package var calls: Int64
        package var limits: [Limit]

        package init(connections: Int64, users: Int64, watchers: Int64, calls: Int64, limits: [Limit]) {
            self.connections = connections
            self.users = users
            self.watchers = watchers
            self.calls = calls
            self.limits = limits
        }
    }

    package var version: String
    package var pid: Int64
    /// Time since its start, milliseconds, including suspended time.
    package var uptime: Int64
    /// The price, as in the reply to `GetPrice`, with the daemon's instance.
    package var price: StateMessage
    /// When the current freshness began.
    package var since: Timestamp
    package var ticking: Ticking
    package var ticks: Ticks
    /// The rate of USDT; `nil` before the first measurement.
    package var pegRate: PegRate?
    package var store: Store
    package var clients: Clients
    /// The sources at addresses other than the exchanges' own.
    package var elsewhere: [String]
    /// The sources that an administrator has switched off.
    package var sourcesOff: [String]
    package var clock: Clock
    /// `nil` from version 1.0.0.
    package var reloads: Reloads?

    package init(
        version: String, pid: Int64, uptime: Int64, price: StateMessage, since: Timestamp, ticking: Ticking,
        ticks: Ticks, pegRate: PegRate? = nil, store: Store, clients: Clients, elsewhere: [String] = [],
        sourcesOff: [String] = [], clock: Clock = Clock(), reloads: Reloads? = nil
    ) {
        self.version = version
        self.pid = pid
        self.uptime = uptime
        self.price = price
        self.since = since
        self.ticking = ticking
        self.ticks = ticks
        self.pegRate = pegRate
        self.store = store
        self.clients = clients
        self.elsewhere = elsewhere
        self.sourcesOff = sourcesOff
        self.clock = clock
        self.reloads = reloads
    }
}

extension StatusMessage: JSONMessage {
    package static var blank: StatusMessage {
        StatusMessage(
            version: "", pid: 0, uptime: 0, price: .blank, since: Timestamp(milliseconds: 0), ticking: .running,
            ticks: .blank, store: .blank, clients: .blank)
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("version", &version, .text)
        try fields.required("pid", &pid, .integer)
        try fields.required("uptimeMs", &uptime, .milliseconds)
        try fields.required("state", &price, .message)
        try fields.required("since", &since, .time)
        try fields.required("ticking", &ticking, .choice)
        try fields.required("ticks", &ticks, .message)
        try fields.optional("tetherRate", &pegRate, .message)
        try fields.required("store", &store, .message)
        try fields.required("clients", &clients, .message)
        try fields.added("elsewhere", &elsewhere, .texts)
        try fields.added("clock", &clock, .message)
        try fields.optional("reloads", &reloads, .message)
        try fields.added("sourcesOff", &sourcesOff, .texts)
    }
}

extension StatusMessage.Ticks: JSONMessage {
    package static var blank: StatusMessage.Ticks { .init(interval: 0, done: 0, failed: 0, skipped: 0) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("intervalMs", &interval, .interval)
        try fields.required("done", &done, .integer)
        try fields.required("failed", &failed, .integer)
        try fields.required("skipped", &skipped, .integer)
        try fields.added("confirmed", &validated.confirmed, .integer)
        try fields.added("unconfirmed", &validated.unconfirmed, .integer)
        try fields.added("withheld", &validated.withheld, .integer)
    }
}

extension StatusMessage.Store: JSONMessage {
    package static var blank: StatusMessage.Store {
        .init(runtimeDirectory: "", stateDirectory: "", synced: nil, failure: nil)
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("runtimeDirectory", &runtimeDirectory, .text)
        try fields.required("stateDirectory", &stateDirectory, .text)
        try fields.optional("syncedAt", &synced, .time)
        try fields.optional("failure", &failure, .text)
        try fields.optional("heldCandles", &heldCandles, .integer)
        try fields.optional("historyFailure", &historyFailure, .text)
        try fields.optional("candleFailure", &candleFailure, .text)
    }
}

extension StatusMessage.Clients: JSONMessage {
    package static var blank: StatusMessage.Clients {
        .init(connections: 0, users: 0, watchers: 0, calls: 0, limits: [])
    }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("connections", &connections, .integer)
        try fields.required("users", &users, .integer)
        try fields.required("watchers", &watchers, .integer)
        try fields.required("calls", &calls, .integer)
        try fields.required("limits", &limits, .list(.message))
    }
}

extension StatusMessage.Clients.Limit: JSONMessage {
    package static var blank: StatusMessage.Clients.Limit { .init(name: "", most: 0, hits: 0) }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("name", &name, .text)
        try fields.required("most", &most, .integer)
        try fields.required("hits", &hits, .integer)
    }
}

extension StatusMessage.Clock: JSONMessage {
    package static var blank: StatusMessage.Clock { StatusMessage.Clock() }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("state", &state, .choice)
        try fields.optional("differenceMs", &difference, .integer)
        try fields.optional("sources", &sources, .integer)
        try fields.optional("known", &known, .integer)
    }
}

extension StatusMessage.Reloads: JSONMessage {
    package static var blank: StatusMessage.Reloads { StatusMessage.Reloads() }

    package mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("begun", &begun, .integer)
        try fields.required("done", &done, .integer)
        try fields.optional("failure", &failure, .text)
    }
}
