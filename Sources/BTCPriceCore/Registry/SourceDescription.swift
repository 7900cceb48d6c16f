/// The properties of a source: a market that is requested at an address.
package struct SourceDescription: Sendable, Hashable {
    package let venue: Venue
    package let market: Market
    /// Other markets whose prices come with the same response.
    package let companions: [Market]
    /// Scheme and host, or the path of a peer's socket.
    package let address: String
    /// What is requested there: the path and the query, with placeholders. It may contain a credential, and is not stored.
    package var path = ""
    /// How long all sources other than reserves must be without a price before this one is requested; `nil` if it is not a reserve.
    package var reserve: Duration?

    package init(venue: Venue, market: Market, companions: [Market] = [], address: String) {
        self.venue = venue
        self.market = market
        self.companions = companions
        self.address = address
    }

    /// Its name in the configuration, in quotes and in the journal.
    package var name: String { venue.name }
}
