import BTCPriceCore

/// What to do about a price that is older than a client accepts.
enum TooOld: Equatable {
    /// Wait: the first tick after a start or a pause is still to come.
    case waits
    /// Reply with this error.
    case refuses(Reply)

    /// - Parameter maxAge: What the client accepts, milliseconds; `nil` for any age.
    /// - Returns: `nil` if the price is not too old.
    init?(_ state: PriceState, _ maxAge: Int64?, at boottime: BootTime) {
        guard let maxAge, !state.isWithin(maxAge, at: boottime) else { return nil }
        let waits = state.ticks.awaitsTick && state.ticks.ticking != .paused
        self = waits ? .waits : .refuses(.tooOld(state.aged(at: boottime), at: boottime))
    }
}

/// What all connections share: limits, counts and published states. Replies of the same form share an encoding for a short time,
/// and calls of the same bytes a decoding.
struct ReplyCache {
    /// How long replies share an encoding, milliseconds. The time that it contains is no older.
    private static let sharedFor: Int64 = 100

    /// The longest call that is remembered, bytes.
    private static let longestRemembered = 256

    /// The published state of a currency.
    private struct Shown {
        let state: PriceState
        let hasPrice: Bool
        let version: UInt64
        /// How long the encoded replies are valid.
        var trueUntil = BootTime.min
        var single: [UInt8]?
        var continued: [UInt8]?
    }

    /// Identifies the daemon whose states are published.
    private(set) var instance: String
    /// In the order of the currencies.
    private var shown: [Shown] = []
    /// The last call. Most clients send the same bytes each time.
    private var last: (bytes: [UInt8], call: Call)?
    /// The currencies. The first one is the default if a client names none.
    private(set) var currencies: [String] = []

    var counts: ClientCounts
    /// The limits hit since ``takeHits()``.
    private var hits: [ClientLimit] = []
    var limits: ServerLimits { counts.limits }

    /// The version of the published states.
    private(set) var version: UInt64 = 0

    init(instance: String, limits: ServerLimits) {
        self.instance = instance
        counts = ClientCounts(limits: limits)
    }

    /// Counts a hit of a limit.
    mutating func hit(_ limit: ClientLimit) {
        counts.hit(limit)
        hits.append(limit)
    }

    /// The limits hit since the last call.
    mutating func takeHits() -> [ClientLimit] {
        guard !hits.isEmpty else { return [] }
        defer { hits.removeAll(keepingCapacity: true) }
        return hits
    }

    /// The call that a message contains.
    mutating func call(_ message: ArraySlice<UInt8>) throws(MessageError) -> Call {
        if let last, last.bytes.elementsEqual(message) { return last.call }
        guard message.count <= Self.longestRemembered else { return try Call(decoding: message) }
        let bytes = Array(message)
        let call = try Call(decoding: bytes[...])
        last = (bytes, call)
        return call
    }

    /// Whether the published state of a currency has a price.
    /// - Parameter currency: `nil` for the first one.
    func holdsPrice(_ currency: String?) -> Bool {
        index(of: currency).map { shown[$0].hasPrice } ?? false
    }

    /// Whether the published state of a currency has a price that is too old, and what to do; `nil` if it has not.
    /// - Parameter currency: `nil` for the first one.
    func tooOld(_ currency: String?, _ maxAge: Int64?, at boottime: BootTime) -> TooOld? {
        maxAge == nil ? nil : index(of: currency).flatMap { TooOld(shown[$0].state, maxAge, at: boottime) }
    }

    private func index(of currency: String?) -> Int? {
        guard let currency else { return shown.indices.first }
        return currencies.firstIndex(of: currency)
    }

    /// - Parameter states: The states of all currencies, in their order.
    mutating func show(_ states: [(state: PriceState, version: UInt64)], of instance: String, version: UInt64) {
        self.version = version
        if self.instance != instance {
            self.instance = instance
            shown = []
        }
        shown = states.map { state, version in
            shown.first { $0.version == version }
                ?? Shown(state: state, hasPrice: state.freshness != .none, version: version)
        }
        currencies = shown.map { $0.state.currency }
    }

    /// The reply to a call, NUL included; empty if the currency is not kept.
    /// - Parameters:
    ///   - currency: `nil` for the first one.
    ///   - continues: Whether more replies follow.
    ///   - boottime: The time of the reply. A fresh state may be stale by then.
    mutating func reply(_ currency: String?, continues: Bool, at boottime: BootTime) -> [UInt8] {
        guard let index = index(of: currency) else { return [] }
        if boottime > shown[index].trueUntil {
            let freshUntil = shown[index].state.ticks.freshUntil.flatMap { $0 < boottime ? nil : $0 } ?? .max
            shown[index].trueUntil = min(freshUntil, boottime + Self.sharedFor)
            (shown[index].single, shown[index].continued) = (nil, nil)
        }
        if let bytes = continues ? shown[index].continued : shown[index].single { return bytes }
        let bytes = Self.reply(shown[index].state, instance: instance, continues: continues, at: boottime)
        if continues { shown[index].continued = bytes } else { shown[index].single = bytes }
        return bytes
    }

    /// Encodes a state as a reply, NUL included.
    static func reply(_ state: PriceState, instance: String, continues: Bool, at boottime: BootTime) -> [UInt8] {
        let message = StateMessage(instance: instance, state: state.aged(at: boottime), boottime: boottime)
        return Reply.state(message, continues: continues).encoded()
    }
}
