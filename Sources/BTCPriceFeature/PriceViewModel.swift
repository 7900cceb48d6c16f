public import BTCPriceCore
import FoundationEssentials
public import Observation

/// Which way the price went when it changed last.
public enum PriceDirection: String, Sendable, Hashable {
    /// It rose.
    case up
    /// It fell.
    case down
    /// It has not changed yet.
    case flat
}

/// What a reader sees of the price: its text, its time, and the banner while it is not current. Observable, and without a
/// terminal or a socket in it, so that any front end can drive it.
@Observable
public final class PriceViewModel {
    /// `$68,901.23`, or ``PriceTexts/placeholder``.
    public private(set) var price = PriceTexts.placeholder
    /// `Aug 25, 14:30`, or ``PriceTexts/placeholder``.
    public private(set) var timestamp = PriceTexts.placeholder
    /// What to say while the price is not current; `nil` while it is.
    public private(set) var banner: String?
    /// What to say of the price although it is right; `nil` where nothing is.
    public private(set) var warning: String?
    /// Which way the price went when it changed last, of those that were shown here.
    public private(set) var direction = PriceDirection.flat

    @ObservationIgnored private let render: RenderPriceAndTimestamp
    @ObservationIgnored private var value: Decimal?

    /// - Parameter timestampFormatter: Makes the text of the time.
    public init(timestampFormatter: any TimestampFormatter = ReaderTimestampFormatter()) {
        render = RenderPriceAndTimestamp(priceFormatter: DollarFormatter(), timestampFormatter: timestampFormatter)
    }

    /// The line of the price: `Aug 25, 14:30 - $68,901.23`, or ``PriceTexts/placeholder``.
    public var line: String {
        price == PriceTexts.placeholder ? PriceTexts.placeholder : PriceTexts.line(timestamp, price)
    }

    /// All there is to say beside the price.
    public var notes: [String] { [banner, warning].compactMap(\.self) }

    /// Shows a state.
    public func show(_ state: PriceState) {
        let formatted = state.quote.map(render.execute)
        price = formatted?.price ?? PriceTexts.placeholder
        timestamp = formatted?.timestamp ?? PriceTexts.placeholder
        warning = state.quote == nil ? nil : state.warning.map { "Warning: \($0)." }
        if let value, let new = state.quote?.value, new != value { direction = new > value ? .up : .down }
        value = state.quote?.value ?? value
        if state.freshness == .fresh { banner = nil } else { updatesFailed() }
    }

    /// No newer state can be had: what is shown is the last one from now on.
    public func updatesFailed() {
        banner = timestamp == PriceTexts.placeholder ? PriceTexts.failed : PriceTexts.stale(from: timestamp)
    }
}
