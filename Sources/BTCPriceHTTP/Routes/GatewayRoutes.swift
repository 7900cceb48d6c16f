import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import NIOCore
import NIOHTTP1
import Varlink

/// The routes of the gateway.
struct GatewayRoutes: Sendable {
    let daemon: DaemonClient
    let policy: AccessPolicy
    /// The age above which a price is treated as missing, seconds, unless the request sets another one.
    let maxAge: Int64
    /// Whether another event stream is allowed. Called on the event loop.
    let hasRoomForStream: @Sendable () -> Bool

    private let page = Page()
    private let openAPI = Representation(
        String(decoding: PackageResources.openapi_json, as: UTF8.self), contentType: "application/json",
        cacheControl: "max-age=3600")

    /// Returns the response to any request.
    func response(to request: GatewayRequest) async -> GatewayResponse {
        var response: GatewayResponse
        if let refusal = policy.refusal(of: request) {
            response = refusal.response
        } else {
            do throws(Problem) {
                response = try await route(request)
            } catch {
                response = error.response
            }
        }
        policy.mark(&response, to: request)
        return response
    }

    private func route(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let history = HistoryRoutes(daemon: daemon)
        switch request.path.joined(separator: "/") {
        case "": return page.response(to: request)
        case "openapi.json": return openAPI.response(to: request)
        case "v1/price": return try await prices(request, price)
        case "v1/currencies": return try await prices(request, currencies)
        case "v1/status": return try await status(request)
        case "v1/sources": return try await sources(request)
        case "v1/watch": return try watch(request)
        case "v1/history": return try await history.history(request)
        case "v1/at": return try await history.price(request)
        case "v1/day": return try await history.day(request)
        // Shapes that other programs read. These two are mempool's.
        case "api/v1/prices": return try await prices(request, mempoolPrices)
        case "api/v1/historical-price": return try await history.historicalPrices(request)
        case "exrates/BTC": return try await prices(request, rates)
        // These two are BTCPay Server's. The second one wraps the list.
        case "api/rates": return try await prices(request, rateList)
        case "rates": return try await prices(request, wrappedRateList)
        // LNbits requests this from a price aggregator and reads `rates.median`.
        case _ where request.path.count == 2 && request.path[0] == "rate":
            return try await aggregate(request, request.path[1].uppercased())
        case "metrics": return try await metrics(request)
        case "healthz": return try await health(request)
        default: throw Problem(.notFound, "There is nothing here; see /openapi.json.")
        }
    }

    // MARK: - Ours

    private func price(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        try Problem.check(request, has: "currency", "max-age")
        let message = try Self.currency(request, in: list)
        let state = message.price.state
        guard try isCurrent(state, request, at: list.time) else { throw try tooOld(message, request, at: list.time) }
        return Representation(.object(PriceShapes.price(state, at: list.time)), oldest: state)
    }

    private func currencies(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        try Problem.check(request, has: "currency", "max-age")
        let currencies = try list.currencies.map { (message) throws(Problem) in
            let isCurrent = try isCurrent(message.price.state, request, at: list.time)
            return JSON.object(PriceShapes.currency(message, isCurrent: isCurrent, at: list.time))
        }
        return Representation(.object(["currencies": .array(currencies)]))
    }

    private func status(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request)
        return Representation(.object(PriceShapes.status(try await daemon.status()))).response(to: request)
    }

    private func sources(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency")
        let code = try Self.code(request)
        // Only for a currency that is kept, because each currency needs a separate call.
        _ = try Self.currency(request, in: try await daemon.prices(wakes: false))
        let sources = try await daemon.sources(of: code).map { JSON.object(PriceShapes.source($0)) }
        return Representation(.object(["sources": .array(sources)])).response(to: request)
    }

    private func watch(_ request: GatewayRequest) throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "updates")
        guard hasRoomForStream() else { throw EventStreams.full }
        let codes = try request["currency"].map { (text) throws(Problem) in try Self.codes(text, "currency") }
        guard let updates = WatchUpdates(rawValue: request["updates"] ?? WatchUpdates.ticks.rawValue) else {
            throw Problem(.badRequest, "updates is ticks or changes.")
        }
        return GatewayResponse(
            headers: ["content-type": "text/event-stream", "cache-control": "no-store"],
            stream: EventStreams.Subscription(
                currencies: codes.map(Set.init), updates: updates, lastEventID: request.header("last-event-id")))
    }

    // MARK: - Shapes that other programs read

    private func mempoolPrices(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        let states = try currentStates(list, request)
        return Representation(.object(PriceShapes.mempoolPrices(states)), oldest: Self.oldest(states))
    }

    private func rates(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        let states = try currentStates(list, request)
        return Representation(.object(PriceShapes.rates(states)), oldest: Self.oldest(states))
    }

    private func rateList(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        let states = try namedStates(list, request)
        return Representation(PriceShapes.rateList(states), oldest: Self.oldest(states))
    }

    private func wrappedRateList(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> Representation {
        let states = try namedStates(list, request)
        return Representation(.object(["data": PriceShapes.rateList(states)]), oldest: Self.oldest(states))
    }

    private func aggregate(_ request: GatewayRequest, _ code: String) async throws(Problem) -> GatewayResponse {
        _ = try longestAge(request)
        let list = try await daemon.prices(wakes: true)
        guard let message = list.currencies.first(where: { $0.currency == code }) else {
            throw Self.notKept(code, in: list)
        }
        let state = message.price.state
        guard try isCurrent(state, request, at: list.time) else { throw try tooOld(message, request, at: list.time) }
        return Representation(.object(PriceShapes.aggregate(state)), oldest: state).response(to: request)
    }

    /// The states of the pairs that a request names, such as `BTC_USD,BTC_EUR`; all states if it names none.
    private func namedStates(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> [PriceState] {
        let states = try currentStates(list, request)
        guard let pairs = request["currencyPairs"], !pairs.isEmpty else { return states }
        return pairs.uppercased().split(separator: ",").compactMap { pair in
            states.first { "BTC_\($0.currency)" == pair }
        }
    }

    // MARK: - Monitoring

    private func metrics(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let isOpenMetrics = request.header("accept")?.contains("application/openmetrics-text") == true
        let format: MetricsText.Format = isOpenMetrics ? .openMetrics : .prometheus
        let text = MetricsText.text(try await daemon.metrics(), as: format)
        return Representation(text, contentType: format.contentType, cacheControl: "no-store").response(
            to: request, vary: "Accept")
    }

    private func health(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let message = try Self.currency(request, in: try await daemon.prices(wakes: false))
        let freshness = message.price.state.freshness
        guard freshness == .fresh else {
            throw Problem.unavailable("The price in \(message.currency) is \(freshness.rawValue).")
        }
        return Representation(.object(["state": .string("fresh")]), cacheControl: "no-store").response(to: request)
    }

    // MARK: - Prices

    /// A response whose body is made from the prices. All requests with the same target share the body until there are newer prices.
    private func prices(
        _ request: GatewayRequest, _ body: (PriceList, GatewayRequest) throws(Problem) -> Representation
    ) async throws(Problem) -> GatewayResponse {
        // An invalid request must not resume the ticks.
        _ = try (Self.code(request), longestAge(request))
        let list = try await daemon.prices(wakes: true)
        return try list.bodies.body(of: request.target) { () throws(Problem) in try body(list, request) }.response(
            to: request)
    }

    /// The currency that a request names, otherwise the first one.
    static func currency(_ request: GatewayRequest, in list: PriceList) throws(Problem) -> CurrencyMessage {
        let code = try code(request)
        guard let message = list.currencies.first(where: { code == nil || $0.currency == code }) else {
            throw notKept(code ?? "", in: list)
        }
        return message
    }

    private static func notKept(_ code: String, in list: PriceList) -> Problem {
        let known = list.currencies.map(\.currency).joined(separator: ", ")
        return Problem(.notFound, "The price is not kept in \(code.prefix(8)), only in \(known).")
    }

    /// The states whose price is not too old.
    private func currentStates(_ list: PriceList, _ request: GatewayRequest) throws(Problem) -> [PriceState] {
        let longest = try longestAge(request)
        let states = list.currencies.map(\.price.state).filter { Self.isCurrent($0, longest, at: list.time) }
        guard !states.isEmpty else { throw Problem.unavailable("No price is new enough.", retryAfter: 5) }
        return states
    }

    private func isCurrent(_ state: PriceState, _ request: GatewayRequest, at now: ObservationTime) throws(Problem)
        -> Bool
    {
        Self.isCurrent(state, try longestAge(request), at: now)
    }

    private static func isCurrent(_ state: PriceState, _ longest: Duration, at now: ObservationTime) -> Bool {
        state.age(at: now).map { $0.age <= longest } ?? false
    }

    private func longestAge(_ request: GatewayRequest) throws(Problem) -> Duration {
        guard let text = request["max-age"] else { return .seconds(maxAge) }
        guard let seconds = Int64(text), (1...31_536_000).contains(seconds) else {
            throw Problem(.badRequest, "max-age is a number of seconds from 1 to 31536000.")
        }
        return .seconds(seconds)
    }

    private static func oldest(_ states: [PriceState]) -> PriceState? {
        states.min { ($0.quote?.timestamp.milliseconds ?? 0) < ($1.quote?.timestamp.milliseconds ?? 0) }
    }

    private func tooOld(_ message: CurrencyMessage, _ request: GatewayRequest, at now: ObservationTime) throws(Problem)
        -> Problem
    {
        let state = message.price.state
        guard state.quote != nil else {
            return .unavailable("There is no price in \(message.currency) yet.", retryAfter: 5)
        }
        let reason = PriceShapes.reason(of: state).map { ": \($0)" } ?? ""
        guard let age = state.age(at: now)?.age.components.seconds else {
            return .unavailable("The age of the price in \(message.currency) is not known\(reason).", retryAfter: 5)
        }
        let longest = try longestAge(request).components.seconds
        return .unavailable(
            "The price in \(message.currency) is \(age) s old, more than max-age allows (\(longest) s)\(reason).",
            retryAfter: 5)
    }

    // MARK: - Parameters

    static func code(_ request: GatewayRequest) throws(Problem) -> String? {
        guard let text = request["currency"] else { return nil }
        let codes = try codes(text, "currency")
        guard codes.count == 1 else { throw Problem(.badRequest, "currency is one code, such as USD.") }
        return codes[0]
    }

    private static func codes(_ text: String, _ name: String) throws(Problem) -> [String] {
        let codes = text.uppercased().split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard codes.count <= 32, codes.allSatisfy({ $0.wholeMatch(of: /[A-Z]{3}/) != nil }) else {
            throw Problem(.badRequest, "\(name) is a code of three letters, such as USD.")
        }
        return codes
    }
}
