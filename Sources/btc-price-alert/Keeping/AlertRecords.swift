import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket

/// What is kept of an alert over restarts.
struct AlertRecord: Sendable, Hashable {
    var name = ""
    /// What it is of, see ``Alert/identity``.
    var identity = ""
    var position: AlertState.Position?
    /// When it fired last, and what it said.
    var lastFired: Timestamp?
    var lastMessage: String?
    var heldBack: Int64 = 0
    var isOver = false
    /// From when on a change is measured.
    var base: Timestamp?
    /// What went wrong when it was last told, and when that is tried again; `nil` if nothing did.
    var problem: String?
}

extension AlertRecord: JSONMessage {
    static var blank: AlertRecord { AlertRecord() }

    mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("name", &name, .text)
        try fields.required("identity", &identity, .text)
        try fields.optional("position", &position, .choice)
        try fields.optional("lastFired", &lastFired, .time)
        try fields.optional("lastMessage", &lastMessage, .text)
        try fields.required("heldBack", &heldBack, .integer.only { $0 >= 0 })
        try fields.required("isOver", &isOver, .flag)
        try fields.optional("base", &base, .time)
        try fields.optional("problem", &problem, .text)
    }
}

/// When a price of a currency was last checked.
struct SeenCurrency: Sendable, Hashable, JSONMessage {
    var currency = ""
    var time = Timestamp(milliseconds: 0)

    static var blank: SeenCurrency { SeenCurrency() }

    mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("currency", &currency, .text)
        try fields.required("time", &time, .time)
    }
}

/// The state file of the service.
struct AlertRecords: Sendable, Hashable, JSONMessage {
    var alerts: [AlertRecord] = []
    var seen: [SeenCurrency] = []
    /// The commands that have not ended well yet.
    var pending: [Delivery] = []

    static var blank: AlertRecords { AlertRecords() }

    mutating func visit(_ fields: inout JSONFields) throws(JSONFieldError) {
        try fields.required("alerts", &alerts, .list(.message))
        try fields.required("seen", &seen, .list(.message))
        try fields.required("pending", &pending, .list(.message))
    }
}
