public import BTCPriceCore
public import Observation

/// What a reader sees of the price: its text, its time, and the banner while it is not current. Observable, and without a
/// terminal or a socket in it, so that any front end can drive it.
@Observable
public final class PriceViewModel {
    /// Stands for a price and for a time that there never was.
    public static let placeholder = "-"
    /// The banner while nothing was ever held.
    public static let failedMessage = "Failed to update value."

    /// `$68,901.23`, or ``placeholder``.
    public private(set) var price = PriceViewModel.placeholder
    /// `Aug 25, 14:30`, or ``placeholder``.
    public private(set) var timestamp = PriceViewModel.placeholder
    /// What to say while the price is not current; `nil` while it is.
    public private(set) var banner: String?

    @ObservationIgnored private let render: RenderPriceAndTimestamp

    /// - Parameter render: Makes the texts.
    public init(
        render: RenderPriceAndTimestamp = RenderPriceAndTimestamp(
            priceFormatter: DollarFormatter(), timestampFormatter: LocalTimestampFormatter())
    ) {
        self.render = render
    }

    /// The line of the price: `Aug 25, 14:30 - $68,901.23`, or ``placeholder``.
    public var line: String {
        price == Self.placeholder ? Self.placeholder : "\(timestamp) - \(price)"
    }

    /// Shows a state.
    public func show(_ state: PriceState) {
        guard let quote = state.quote else {
            price = Self.placeholder
            timestamp = Self.placeholder
            banner = Self.failedMessage
            return
        }
        let formatted = render.execute(quote)
        price = formatted.price
        timestamp = formatted.timestamp
        banner =
            state.freshness == .fresh
            ? nil : "\(Self.failedMessage) Displaying last updated value from \(formatted.timestamp)"
    }
}
