import BTCPriceCore
import BTCPriceSocket
import NIOHTTP1

/// Currencies with their prices at one moment, and the bodies that were made from them.
struct PriceList: Sendable {
    let currencies: [CurrencyMessage]
    /// The currencies whose price is older than the request allows. Their state in ``currencies`` has it nevertheless.
    var tooOld: [String: PriceTooOld] = [:]
    /// When the daemon sent them.
    let time: ObservationTime
    let bodies = KeptBodies()

    /// A currency; the first one if `code` is `nil`.
    func currency(_ code: String?) throws(Problem) -> CurrencyMessage {
        guard let message = currencies.first(where: { code == nil || $0.currency == code }) else {
            throw notKept(code ?? "")
        }
        return message
    }

    /// The status for a currency that is not among these.
    func notKept(_ code: String) -> Problem {
        let known = currencies.map(\.currency).joined(separator: ", ")
        return Problem(.notFound, "The price is not kept in \(code.prefix(8)), only in \(known).")
    }
}
