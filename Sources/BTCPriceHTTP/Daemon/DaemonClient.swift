import BTCPriceAPI
import BTCPriceCore
import Varlink

/// Calls the daemon for the requests of the gateway's clients.
final class DaemonClient: Sendable {
    /// A part of the history.
    struct Candles: Sendable {
        /// ISO 4217
        let currency: String
        let candles: [Candle]
        /// The start of the next candle, if these are not all.
        let next: Timestamp?
        let bodies = KeptBodies()
    }

    /// A request for a price of the past.
    struct Moment: Sendable, Hashable {
        let time: Timestamp
        let currency: String?
    }

    private let pricesThatWake: KeptReplies<Bool, PriceList>
    private let prices: KeptReplies<Bool, PriceList>
    private let status: KeptReplies<Bool, StatusMessage>
    private let sources: KeptReplies<String?, [SourceReport]>
    private let metrics: KeptReplies<Bool, [MetricFamily]>
    private let histories: KeptReplies<HistoryQuery, Candles>
    private let days: KeptReplies<String?, PriceDay?>
    private let moments: KeptReplies<Moment, (known: PriceAt?, currency: String)>

    /// - Parameter socket: Returns the path of the daemon's socket.
    init(socket: @escaping @Sendable () -> String) {
        let link = DaemonLink(timeout: .seconds(2), socket: socket)
        pricesThatWake = KeptReplies { _ in
            await link.call { connection throws(ClientError) in
                let currencies = try connection.listCurrencies()
                // `GetPrice` resumes ticks that wait for a client; its result is already known. Without a price, it would make the daemon
                // request one.
                if currencies.first?.price.state.quote != nil { _ = try connection.getPrice() }
                return PriceList(currencies, at: .now())
            }
        }
        prices = KeptReplies { _ in
            await link.call { connection throws(ClientError) in
                PriceList(try connection.listCurrencies(), at: .now())
            }
        }
        status = KeptReplies { _ in
            await link.call { connection throws(ClientError) in try connection.getStatus() }
        }
        sources = KeptReplies { currency in
            await link.call { connection throws(ClientError) in try connection.listSources(currency) }
        }
        days = KeptReplies { currency in
            await link.call { connection throws(ClientError) in try connection.day(of: currency) }
        }
        // Both use other connections: the metrics of 150 currencies, or a disk that takes seconds, must not delay a price.
        let long = DaemonLink(timeout: .seconds(5), socket: socket)
        metrics = KeptReplies { _ in
            await long.call { connection throws(ClientError) in try connection.getMetrics() }
        }
        let past = DaemonLink(timeout: .seconds(10), socket: socket)
        // Clients can vary requests for the past without limit, so the calls are limited.
        let rate = CallRate(burst: 100, perSecond: 20)
        histories = KeptReplies(for: .seconds(1), limit: 4, rate: rate) { query in
            await past.call { connection throws(ClientError) in
                var (all, currency, next) = ([Candle](), "", Timestamp?.none)
                try connection.history(query) { candles, named, following in
                    all += candles
                    (currency, next) = (named, following)
                }
                return Candles(currency: currency, candles: all, next: next)
            }
        }
        moments = KeptReplies(for: .seconds(1), rate: rate) { moment in
            await past.call { connection throws(ClientError) in
                let reply = try connection.price(at: moment.time, in: moment.currency)
                return (reply.known, reply.currency)
            }
        }
    }

    /// The currencies that are kept, with their prices.
    /// - Parameter wakes: Whether to resume ticks that wait for a client. Monitoring must not resume them.
    func prices(wakes: Bool) async throws(Problem) -> PriceList {
        try await (wakes ? pricesThatWake : prices).reply(to: wakes)
    }

    /// Whether the daemon responds in time.
    func responds() async -> Bool { (try? await prices.reply(to: false)) != nil }

    func status() async throws(Problem) -> StatusMessage { try await status.reply(to: true) }

    /// - Parameter currency: ISO 4217, one that is kept; `nil` for the first currency.
    func sources(of currency: String?) async throws(Problem) -> [SourceReport] {
        try await sources.reply(to: currency)
    }

    func metrics() async throws(Problem) -> [MetricFamily] { try await metrics.reply(to: true) }

    /// - Parameter currency: ISO 4217, one that is kept; `nil` for the first currency.
    /// - Returns: The last 24 hours; `nil` if nothing is known about them.
    func day(of currency: String?) async throws(Problem) -> PriceDay? { try await days.reply(to: currency) }

    /// - Parameters:
    ///   - query: Must have a limit.
    ///   - client: Who asks. Clients share the calls for the past.
    func history(_ query: HistoryQuery, for client: String) async throws(Problem) -> Candles {
        try await histories.reply(to: query, for: client)
    }

    /// - Returns: The price, `nil` if nothing is known; and its currency.
    func price(at moment: Moment, for client: String) async throws(Problem) -> (known: PriceAt?, currency: String) {
        try await moments.reply(to: moment, for: client)
    }
}
