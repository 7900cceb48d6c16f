import BTCPriceCore
import BTCPriceVarlink
import Varlink

/// What all connections have done since the start.
struct CallCounts {
    /// Whole calls.
    var calls: Int64 = 0
    /// Those that want a price.
    var priceCalls: Int64 = 0
    /// Messages longer than they may be.
    var tooLong: Int64 = 0
    /// Clients whose next call had to wait, since they did not read.
    var heldBack: Int64 = 0
}

/// The published state in the forms it is sent in, each encoded at most once.
struct Board {
    private let instance: String
    private var state = PriceState.empty
    private var told = PriceState.empty
    private var single: [UInt8]?
    private var continued: [UInt8]?

    /// What the connections have done.
    var counts = CallCounts()

    /// Counts the states that were shown.
    private(set) var version: UInt64 = 0

    init(instance: String) {
        self.instance = instance
    }

    /// Whether there is a price to tell.
    var holdsPrice: Bool { state.quote != nil }

    mutating func show(_ state: PriceState, version: UInt64) {
        self.state = state
        self.version = version
        tell(state)
    }

    /// The reply to a call, its NUL included.
    /// - Parameters:
    ///   - continues: Whether more replies follow.
    ///   - boottime: The time of the reply, `CLOCK_BOOTTIME` in milliseconds: a fresh state may have grown old by then.
    mutating func reply(continues: Bool, at boottime: Int64) -> [UInt8] {
        let now = state.told(at: boottime)
        if now != told { tell(now) }
        if let bytes = continues ? continued : single { return bytes }
        let bytes = Self.reply(told, instance: instance, continues: continues)
        if continues { continued = bytes } else { single = bytes }
        return bytes
    }

    /// Encodes a state as a reply, its NUL included.
    static func reply(_ state: PriceState, instance: String, continues: Bool) -> [UInt8] {
        Reply.state(StateMessage(instance: instance, state: state), continues: continues).encoded()
    }

    private mutating func tell(_ state: PriceState) {
        told = state
        single = nil
        continued = nil
    }
}
