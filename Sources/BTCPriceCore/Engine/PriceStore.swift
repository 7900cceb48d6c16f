/// Stores the last valid price across a restart.
///
/// Synchronous on purpose: nothing else may happen between accepting a price and showing it to a client, so that a kill never
/// loses a price that a client has seen. An implementation must not block for longer than a write to memory takes.
package protocol PriceStore: Sendable {
    /// Stores `prices` and the sources' cooldowns so that they outlive this process.
    /// - Parameters:
    ///   - prices: The last valid price of each currency that had one, the first currency's first.
    ///   - cooldowns: The cooldowns that a restart must not shorten, by the venue's name.
    func save(_ prices: [CachedPrice], cooldowns: [String: KeptCooldown]) throws(PriceStoreError)
}

package struct StoredPrice: Sendable, Hashable {
    /// The last valid price of each currency, except those that could not be read.
    package let prices: [CachedPrice]
    /// The sources' cooldowns that were in effect when they were saved, by the venue's name.
    package let cooldowns: [String: KeptCooldown]
    /// The errors found while loading.
    package let problems: [PriceStoreError]

    package init(
        prices: [CachedPrice] = [], cooldowns: [String: KeptCooldown] = [:], problems: [PriceStoreError] = []
    ) {
        self.prices = prices
        self.cooldowns = cooldowns
        self.problems = problems
    }
}

package enum PriceStoreError: Error, Sendable, Hashable {
    /// A file or folder can't be read. `reason` is one line, such as the system's error message.
    case unreadable(path: String, reason: String)
    /// A file can't be written. `reason` is one line, such as the system's error message.
    case unwritable(path: String, reason: String)
    /// A file's content is not what was written. It was moved to `setAside`; `nil` if that failed.
    case corrupt(path: String, reason: String, setAside: String?)
    /// A file has entries that are not valid, each with the reason. The others are used.
    case unusable(path: String, entries: [String])
}

extension PriceStoreError: CustomStringConvertible {
    /// One line for an operator.
    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .unwritable(let path, let reason): "cannot write \(path): \(reason)"
        case .corrupt(let path, let reason, let setAside?): "\(path) is damaged (\(reason)); set aside as \(setAside)"
        case .corrupt(let path, let reason, nil): "\(path) is damaged (\(reason)) and could not be set aside"
        case .unusable(let path, let entries):
            "\(path) is used without \(entries.prefix(5).joined(separator: ", "))"
                + (entries.count > 5 ? " and \(entries.count - 5) more" : "")
        }
    }
}

/// The last valid price of one currency, with what a restart needs to reject old responses and to validate the next prices.
package struct CachedPrice: Sendable, Hashable {
    package let price: ShownPrice
    /// The newest position accepted from each market.
    package let positions: [KeptPosition]
    /// How far each market usually is from the others.
    package let learned: [LearnedBasis]?

    package init(_ price: ShownPrice, positions: [KeptPosition] = [], learned: [LearnedBasis]? = nil) {
        self.price = price
        self.positions = positions
        self.learned = learned
    }

    package var quote: PriceQuote { price.quote }
}
