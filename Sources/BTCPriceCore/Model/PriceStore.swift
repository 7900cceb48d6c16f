/// Keeps the last valid price over a restart.
///
/// Synchronous on purpose: between taking a price in and showing it to a client nothing else may happen, so that what a
/// client has seen is never lost to a kill. An implementation must not block for longer than a write to memory takes.
package protocol PriceStore: Sendable {
    /// Reads what was kept. Damage is reported, never fatal: the price goes on without it.
    func load() -> StoredPrice

    /// Keeps `price` so that it outlives this process, and the sources' rests with it.
    /// - Parameters:
    ///   - price: The last valid price; `nil` where there never was one.
    ///   - rests: The rests that a restart must not cut short, by the source's name.
    func save(_ price: CachedPrice?, cooldowns: [String: KeptCooldown]) throws(PriceStoreError)

    /// Brings what was saved to where it outlives a power cut. May take as long as the disk does; called at the stop.
    func flush() throws(PriceStoreError)
}

/// What a store held.
package struct StoredPrice: Sendable, Hashable {
    /// The last valid price; `nil` where there is none or none could be read.
    package let price: CachedPrice?
    /// The rests of sources that were not over when it was saved, by the source's name.
    package let cooldowns: [String: KeptCooldown]
    /// What was found broken on the way.
    package let problems: [PriceStoreError]

    /// - Parameters:
    ///   - price: The last valid price.
    ///   - rests: The rests of sources that were not over when it was saved.
    ///   - problems: What was found broken on the way.
    package init(price: CachedPrice?, cooldowns: [String: KeptCooldown] = [:], problems: [PriceStoreError] = []) {
        self.price = price
        self.cooldowns = cooldowns
        self.problems = problems
    }
}

/// What went wrong with a kept price.
package enum PriceStoreError: Error, Sendable, Hashable {
    /// A file or folder can't be read. `reason` is the system's word for it.
    case unreadable(path: String, reason: String)
    /// A file can't be written. `reason` is the system's word for it.
    case unwritable(path: String, reason: String)
    /// A file's content is not what was written; it was moved to `setAside`, where that worked.
    case corrupt(path: String, reason: String, setAside: String?)
}

extension PriceStoreError: CustomStringConvertible {
    /// One line that says what to do about it, where something can be done.
    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .unwritable(let path, let reason): "cannot write \(path): \(reason)"
        case .corrupt(let path, let reason, let setAside?): "\(path) is damaged (\(reason)); set aside as \(setAside)"
        case .corrupt(let path, let reason, nil): "\(path) is damaged (\(reason)) and could not be set aside"
        }
    }
}
