/// The results of the ticks that needed more than one market, since the start.
package struct ValidatedTicks: Sendable, Hashable {
    /// Shown, and a second market agreed.
    package var confirmed: Int64
    /// Shown although no second market could confirm a jump.
    package var unconfirmed: Int64
    /// Not shown: contradicted, or not confirmed yet.
    package var withheld: Int64

    package init(confirmed: Int64 = 0, unconfirmed: Int64 = 0, withheld: Int64 = 0) {
        self.confirmed = confirmed
        self.unconfirmed = unconfirmed
        self.withheld = withheld
    }
}
