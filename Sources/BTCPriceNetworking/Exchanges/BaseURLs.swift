import BTCPriceCore
import Synchronization

/// The base URLs of an exchange, shared by its requests. After status 451, which refuses the region, the second one is used.
final class BaseURLs: Sendable {
    /// The base URLs, the preferred one first.
    let all: [String]
    private let index = Atomic(0)

    init(_ first: String, _ second: String?) {
        all = [first] + [second].compactMap(\.self)
    }

    /// The index of the base URL in use.
    var used: Int { index.load(ordering: .relaxed) }

    /// Checks that a response does not refuse the region, or that there is no other base URL.
    /// - Parameter used: The index of the base URL that was requested.
    func check(_ response: HTTPResponse, from used: Int) throws(PriceLoadingError) {
        guard response.status == 451, used + 1 < all.count else { return }
        // A source gets one request per tick: the second URL is used from the next one on.
        index.store(used + 1, ordering: .relaxed)
        throw .unavailable("HTTP 451, not served in this region; \(all[used + 1]) is used from now on")
    }
}
