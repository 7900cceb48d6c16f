/// The treatment of markets that quote bitcoin in USDT, which is not the dollar.
package enum PegPolicy: String, Sendable, Hashable, CaseIterable {
    /// Show their price unchanged, with a warning while USDT is off its peg. The default.
    case warn
    /// Multiply their price by the measured USDT/USD rate.
    case convert
    /// Skip them while USDT is off its peg.
    case refuse
}
