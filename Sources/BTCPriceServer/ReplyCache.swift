import BTCPriceCore
import BTCPriceAPI
import Varlink

/// Counts over all connections since the start.
struct CallCounts: Equatable {
    /// Complete calls.
    var calls: Int64 = 0
    /// Calls that want a price.
    var priceCalls: Int64 = 0
    /// Messages above ``ServerLimits/messageBytes``.
    var tooLong: Int64 = 0
    /// Clients whose next call had to wait because they did not read.
    var heldBack: Int64 = 0
}

/// What all connections share: the limits, the counts and the published state. Each form of its reply is encoded at most once.
struct ReplyCache {
    /// Replies to the calls of `org.varlink.service`.
    let service: ServiceInterface
    /// The limits in force.
    var limits: ServerLimits
    private let instance: String
    private var state = PriceState.empty
    /// How long the encoded replies are valid, `CLOCK_BOOTTIME` in milliseconds.
    private var trueUntil = Int64.max
    private var single: [UInt8]?
    private var continued: [UInt8]?

    var counts = CallCounts()

    /// The version of the published state.
    private(set) var version: UInt64 = 0

    init(instance: String, service: ServiceInterface, limits: ServerLimits) {
        self.instance = instance
        self.service = service
        self.limits = limits
    }

    /// Whether the published state has a price.
    private(set) var holdsPrice = false

    mutating func show(_ state: PriceState, version: UInt64) {
        self.state = state
        holdsPrice = state.quote != nil
        self.version = version
        encodedAnew(until: state.freshUntil ?? .max)
    }

    /// The reply to a call, NUL included.
    /// - Parameters:
    ///   - continues: Whether more replies follow.
    ///   - boottime: The time of the reply, `CLOCK_BOOTTIME` in milliseconds. A fresh state may be stale by then.
    mutating func reply(continues: Bool, at boottime: Int64) -> [UInt8] {
        if boottime > trueUntil { encodedAnew(until: .max) }
        if let bytes = continues ? continued : single { return bytes }
        let bytes = Self.reply(state.aged(at: boottime), instance: instance, continues: continues)
        if continues { continued = bytes } else { single = bytes }
        return bytes
    }

    /// Encodes a state as a reply, NUL included.
    static func reply(_ state: PriceState, instance: String, continues: Bool) -> [UInt8] {
        Reply.state(StateMessage(instance: instance, state: state), continues: continues).encoded()
    }

    private mutating func encodedAnew(until boottime: Int64) {
        trueUntil = boottime
        single = nil
        continued = nil
    }
}
