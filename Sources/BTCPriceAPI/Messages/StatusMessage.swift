package import BTCPriceCore
package import Varlink

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

    /// The clients and their limits.
    package struct Clients: Sendable, Hashable {
        /// A limit, and how often it was hit since the start.
        package struct Limit: Sendable, Hashable {
            /// Its name, one of those in the interface's definition.
            package var name: String
            /// The maximum.
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

    /// The daemon's semantic version.
    package var version: String
    /// Its process id.
    package var pid: Int64
    /// Time since its start, milliseconds, including suspended time.
    package var uptime: Int64
    /// The price, as in the reply to `GetPrice`, with the daemon's instance.
    package var price: StateMessage
    /// When the current freshness began.
    package var since: Timestamp
    /// Whether the ticks run.
    package var ticking: Ticking
    /// The ticks since the start.
    package var ticks: Ticks
    /// The rate of USDT; `nil` before the first measurement.
    package var pegRate: PegRate?
    /// Where the last price is stored.
    package var store: Store
    /// The clients and their limits.
    package var clients: Clients
    /// The sources at addresses other than the exchanges' own.
    package var elsewhere: [String]

    package init(
        version: String, pid: Int64, uptime: Int64, price: StateMessage, since: Timestamp, ticking: Ticking,
        ticks: Ticks, pegRate: PegRate? = nil, store: Store, clients: Clients, elsewhere: [String] = []
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
    }

    /// The message as JSON, every field of the definition in its order, absent values as null.
    package var json: JSONObject {
        [
            "version": .string(version),
            "pid": .integer(pid),
            "uptimeMs": .integer(uptime),
            "state": .object(price.json),
            "since": .integer(since.milliseconds),
            "ticking": .string(ticking.rawValue),
            "ticks": .object([
                "intervalMs": .integer(ticks.interval), "done": .integer(ticks.done), "failed": .integer(ticks.failed),
                "skipped": .integer(ticks.skipped), "confirmed": .integer(ticks.validated.confirmed),
                "unconfirmed": .integer(ticks.validated.unconfirmed), "withheld": .integer(ticks.validated.withheld),
            ]),
            "tetherRate": pegRate.map { .object($0.json) } ?? .null,
            "store": .object([
                "runtimeDirectory": .string(store.runtimeDirectory), "stateDirectory": .string(store.stateDirectory),
                "syncedAt": .optional(store.synced?.milliseconds), "failure": .optional(store.failure),
                "heldCandles": .optional(store.heldCandles), "historyFailure": .optional(store.historyFailure),
                "candleFailure": .optional(store.candleFailure),
            ]),
            "clients": .object([
                "connections": .integer(clients.connections), "users": .integer(clients.users),
                "watchers": .integer(clients.watchers), "calls": .integer(clients.calls),
                "limits": .array(
                    clients.limits.map {
                        .object(["name": .string($0.name), "most": .integer($0.most), "hits": .integer($0.hits)])
                    }),
            ]),
            "elsewhere": .array(elsewhere.map { .string($0) }),
        ]
    }

    /// Reads the message. Unknown fields are ignored: newer daemons may send them.
    /// - Throws: ``JSONFieldError`` if a field is missing or of the wrong type.
    package init(json: JSONValue) throws(JSONFieldError) {
        let (ticks, store) = (try json.required("ticks", \.objectValue), try json.required("store", \.objectValue))
        let rate: PegRate? =
            if let object = try json.optional("tetherRate", \.objectValue) { try PegRate(json: object) } else { nil }
        let clients = try json.required("clients", \.objectValue)
        self.init(
            version: try json.required("version", \.stringValue),
            pid: try json.required("pid", \.integerValue),
            uptime: try json.required("uptimeMs", \.millisecondsValue),
            price: try StateMessage(json: try json.required("state", \.objectValue)),
            since: try json.required("since", \.timestampValue),
            ticking: try json.choice("ticking", required: Ticking.self),
            ticks: Ticks(
                interval: try ticks.required("intervalMs", \.intervalValue),
                done: try ticks.required("done", \.integerValue), failed: try ticks.required("failed", \.integerValue),
                skipped: try ticks.required("skipped", \.integerValue),
                validated: ValidatedTicks(
                    confirmed: try ticks.optional("confirmed", \.integerValue) ?? 0,
                    unconfirmed: try ticks.optional("unconfirmed", \.integerValue) ?? 0,
                    withheld: try ticks.optional("withheld", \.integerValue) ?? 0)),
            pegRate: rate,
            store: Store(
                runtimeDirectory: try store.required("runtimeDirectory", \.stringValue),
                stateDirectory: try store.required("stateDirectory", \.stringValue),
                synced: try store.optional("syncedAt", \.timestampValue),
                failure: try store.optional("failure", \.stringValue),
                heldCandles: try store.optional("heldCandles", \.integerValue),
                historyFailure: try store.optional("historyFailure", \.stringValue),
                candleFailure: try store.optional("candleFailure", \.stringValue)),
            clients: Clients(
                connections: try clients.required("connections", \.integerValue),
                users: try clients.required("users", \.integerValue),
                watchers: try clients.required("watchers", \.integerValue),
                calls: try clients.required("calls", \.integerValue),
                limits: try clients.list("limits") { (limit) throws(JSONFieldError) in
                    Clients.Limit(
                        name: try limit.required("name", \.stringValue),
                        most: try limit.required("most", \.integerValue),
                        hits: try limit.required("hits", \.integerValue))
                }), elsewhere: try json.optional("elsewhere", \.arrayValue) == nil ? [] : try json.texts("elsewhere"))
    }
}
