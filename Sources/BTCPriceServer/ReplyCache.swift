import BTCPriceCore
import BTCPriceAPI
import Varlink

/// Counts over all connections since the start.
struct CallCounts: Equatable {
    /// Complete calls.
    var calls: Int64 = 0
    /// Calls that were replied to.
    var replied = CallTally()
    /// Calls that want a price.
    var priceCalls: Int64 = 0
    /// Messages above ``ServerLimits/messageBytes``.
    var tooLong: Int64 = 0
    /// Clients whose next call had to wait because they did not read.
    var heldBack: Int64 = 0
}

/// What all connections share: the limits, the counts and the published states. Each form of a reply is encoded at most once.
struct ReplyCache {
    /// The published state of a currency.
    private struct Shown {
        let state: PriceState
        let version: UInt64
        /// How long the encoded replies are valid, `CLOCK_BOOTTIME` in milliseconds.
        var trueUntil: Int64
        var single: [UInt8]?
        var continued: [UInt8]?
    }

    /// Replies to the calls of `org.varlink.service`.
    let service: ServiceInterface
    /// The limits in force.
    var limits: ServerLimits
    /// Identifies the daemon whose states are published.
    private(set) var instance: String
    /// In the order of the currencies.
    private var shown: [Shown] = []
    /// The currencies. The first one is the default if a client names none.
    private(set) var currencies: [String] = []

    var counts = CallCounts()

    /// The version of the published states.
    private(set) var version: UInt64 = 0

    init(instance: String, service: ServiceInterface, limits: ServerLimits) {
        self.instance = instance
        self.service = service
        self.limits = limits
    }

    /// Whether the published state of a currency has a price.
    /// - Parameter currency: `nil` for the first one.
    func holdsPrice(_ currency: String?) -> Bool {
        place(of: currency).map { shown[$0].state.freshness != .none } ?? false
    }

    private func place(of currency: String?) -> Int? {
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
                ?? Shown(state: state, version: version, trueUntil: state.freshUntil ?? .max)
        }
        currencies = shown.map { $0.state.currency }
    }

    /// The reply to a call, NUL included; empty if the currency is not kept.
    /// - Parameters:
    ///   - currency: `nil` for the first one.
    ///   - continues: Whether more replies follow.
    ///   - boottime: The time of the reply, `CLOCK_BOOTTIME` in milliseconds. A fresh state may be stale by then.
    mutating func reply(_ currency: String?, continues: Bool, at boottime: Int64) -> [UInt8] {
        guard let place = place(of: currency) else { return [] }
        if boottime > shown[place].trueUntil {
            (shown[place].trueUntil, shown[place].single, shown[place].continued) = (.max, nil, nil)
        }
        if let bytes = continues ? shown[place].continued : shown[place].single { return bytes }
        let bytes = Self.reply(shown[place].state.aged(at: boottime), instance: instance, continues: continues)
        if continues { shown[place].continued = bytes } else { shown[place].single = bytes }
        return bytes
    }

    /// Encodes a state as a reply, NUL included.
    static func reply(_ state: PriceState, instance: String, continues: Bool) -> [UInt8] {
        Reply.state(StateMessage(instance: instance, state: state), continues: continues).encoded()
    }
}
