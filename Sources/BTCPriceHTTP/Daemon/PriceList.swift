import BTCPriceAPI
import BTCPriceCore
import Synchronization

/// The prices in all currencies at one moment, and the bodies that were made of them: many requests get the same.
final class PriceList: Sendable {
    let currencies: [CurrencyMessage]
    let time: ObservationTime
    /// By the request's target.
    private let bodies = Mutex<[String: Representation]>([:])

    /// Targets differ in what clients make up, such as unknown parameters.
    private static let mostBodies = 64

    /// - Parameter time: When the daemon sent them.
    init(_ currencies: [CurrencyMessage], at time: ObservationTime) {
        self.currencies = currencies
        self.time = time
    }

    /// The body of a target, made once.
    func body(
        of target: String, _ make: () throws(Problem) -> Representation
    ) throws(Problem) -> Representation {
        if let known = bodies.withLock({ $0[target] }) { return known }
        let made = try make()
        bodies.withLock { if $0.count < Self.mostBodies { $0[target] = made } }
        return made
    }
}
