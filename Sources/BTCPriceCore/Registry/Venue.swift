/// An exchange, with the properties that all its markets share.
package struct Venue: Sendable, Hashable {
    /// Its name in the configuration, in quotes and in the journal, in lower-case letters: `binance`.
    package let name: String
    /// The limits that it publishes. All of them apply, to the requests for all its markets together.
    package let limits: [RequestLimit]
    /// How long its servers cache a response; zero if they make each response anew.
    package let cacheTime: Duration
    /// The venue that its prices come from, if that is another one. The two are one source, and count once.
    package let upstream: String?

    package init(
        _ name: String, limits: [RequestLimit] = [], cacheTime: Duration = .zero, upstream: String? = nil
    ) {
        self.name = name
        self.limits = limits
        self.cacheTime = cacheTime
        self.upstream = upstream
    }

    /// The limits for requests to it: its own, and one request per ``cacheTime`` if that is longer than a second.
    var allLimits: [RequestLimit] {
        // Slightly less: a tick that is due when the cache time ends must not be rejected because it is a moment early.
        cacheTime > .seconds(1) ? limits + [RequestLimit(1, per: cacheTime * 0.95)] : limits
    }
}
