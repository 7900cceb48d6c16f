/// How the price is determined.
package enum PriceMode: String, Sendable, Hashable, CaseIterable {
    /// From the first source that has a price. The default.
    case primary
    /// As the median of all sources that can be requested.
    case median
}
