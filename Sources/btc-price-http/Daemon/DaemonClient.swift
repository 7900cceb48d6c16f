import BTCPriceCore
import BTCPriceSocket
import NIOHTTP1

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

    /// A request for current prices.
    private struct Current: Sendable, Hashable {
        /// One that is kept; `nil` for all.
        let currency: String?
        /// The age above which a price counts as missing, seconds.
        let maxAge: Int64
    }

    private let maxAge: Int64
    private let currencies: KeptReplies<Bool, PriceList>
    private let prices: KeptReplies<Current, PriceList>
    private let pricesOfOtherAges: KeptReplies<Current, PriceList>
    private let status: KeptReplies<Bool, StatusMessage>
    private let sources: KeptReplies<String?, [SourceReport]>
    private let metrics: KeptReplies<Bool, [MetricFamily]>
    private let histories: KeptReplies<HistoryQuery, Candles>
    private let days: KeptReplies<String?, PriceDay?>
    private let moments: KeptReplies<Moment, (known: PriceAt?, currency: String)>
    private let happened: KeptReplies<EventQuery, (events: [EventMessage], next: Timestamp?)>

    /// - Parameter maxAge: The age above which a price counts as missing unless a client says another, seconds.
    init(maxAge: Int64, socket: @escaping @Sendable () -> String) {
        self.maxAge = maxAge
        let link = DaemonLink(timeout: .seconds(2), socket: socket)
        currencies = KeptReplies(link) { _, connection throws(ClientError) in
            PriceList(currencies: try connection.listCurrencies(), time: .now())
        }
        // Use another connection, because the daemon replies only after a tick if it was idle.
        let waiting = DaemonLink(timeout: .seconds(10), socket: socket)
        prices = KeptReplies(waiting, limit: 256, call: Self.prices)
        // Clients can vary the age without limit.
        pricesOfOtherAges = KeptReplies(
            waiting, limit: 64, rate: CallRate(burst: 100, perSecond: 20), call: Self.prices)
        status = KeptReplies(link) { _, connection throws(ClientError) in try connection.getStatus() }
        sources = KeptReplies(link) { currency, connection throws(ClientError) in
            try connection.listSources(currency)
        }
        days = KeptReplies(link) { currency, connection throws(ClientError) in try connection.day(of: currency) }
        // On their own connections: neither the metrics of 150 currencies nor a slow disk may delay a price.
        let long = DaemonLink(timeout: .seconds(5), socket: socket)
        metrics = KeptReplies(long) { _, connection throws(ClientError) in try connection.getMetrics() }
        let past = DaemonLink(timeout: .seconds(10), socket: socket)
        // Clients can vary requests for the past without limit, so the calls are limited.
        let rate = CallRate(burst: 100, perSecond: 20)
        histories = KeptReplies(past, for: .seconds(1), limit: 4, rate: rate) {
            query, connection throws(ClientError) in
            var (all, currency, next) = ([Candle](), "", Timestamp?.none)
            try connection.history(query) { candles, named, following in
                all += candles
                (currency, next) = (named, following)
            }
            return Candles(currency: currency, candles: all, next: next)
        }
        happened = KeptReplies(past, for: .seconds(1), limit: 4, rate: rate) { query, connection throws(ClientError) in
            try connection.eventPage(query)
        }
        moments = KeptReplies(past, for: .seconds(1), rate: rate) { moment, connection throws(ClientError) in
            let reply = try connection.price(at: moment.time, in: moment.currency)
            return (reply.known, reply.currency)
        }
    }

    /// The currencies that are kept, with their states. Does not resume ticks that wait for a client: monitoring must not.
    func kept() async throws(Problem) -> PriceList { try await currencies.reply(to: true) }

    /// The current prices. Resumes ticks that wait for a client, and waits for the first one.
    /// - Parameters:
    ///   - currency: ISO 4217, one that is kept; `nil` for all.
    ///   - maxAge: The age above which a price counts as missing, seconds.
    ///   - client: Who asks. Clients share the calls for other ages than the usual one.
    func prices(
        in currency: String? = nil, maxAge: Int64, for client: String
    ) async throws(Problem) -> PriceList {
        let replies = maxAge == self.maxAge ? prices : pricesOfOtherAges
        return try await replies.reply(to: Current(currency: currency, maxAge: maxAge), for: client)
    }

    private static func prices(
        _ wanted: Current, _ connection: inout PriceConnection
    ) throws(ClientError) -> PriceList {
        var (currencies, tooOld) = ([CurrencyMessage](), [String: PriceTooOld]())
        for var message in try connection.listCurrencies() where [nil, message.currency].contains(wanted.currency) {
            let state = message.price.state
            // Without a price, the daemon would request one from an exchange at each call. If it is idle, it must be woken.
            if state.quote != nil || state.ticks.ticking == .idle {
                switch try connection.getPrice(in: message.currency, maxAge: .seconds(wanted.maxAge)) {
                case .success(let price): message.price = price
                case .failure(let old):
                    message.price.state.ticks.failure = old.reason ?? state.failure
                    tooOld[message.currency] = old
                }
            }
            currencies.append(message)
        }
        return PriceList(currencies: currencies, tooOld: tooOld, time: .now())
    }

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

    /// - Returns: The events, and the `after` of the next page; `nil` if there is none.
    func events(_ query: EventQuery, for client: String) async throws(Problem) -> ([EventMessage], next: Timestamp?) {
        try await happened.reply(to: query, for: client)
    }

    /// - Returns: The price, `nil` if nothing is known; and its currency.
    func price(at moment: Moment, for client: String) async throws(Problem) -> (known: PriceAt?, currency: String) {
        try await moments.reply(to: moment, for: client)
    }
}

/// Currencies with their prices at one moment, and the bodies that were made from them.
struct PriceList: Sendable {
    let currencies: [CurrencyMessage]
    /// The currencies whose price is older than the request allows. ``currencies`` has these prices, too.
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
