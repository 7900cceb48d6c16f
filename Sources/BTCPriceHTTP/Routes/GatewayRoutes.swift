import BTCPriceAPI
import BTCPriceCore
import BTCPriceFeature
import HTTPTypes
import Hummingbird
import NIOCore
import Varlink

/// What the gateway serves, by path.
struct GatewayRoutes: Sendable {
    let daemon: DaemonClient
    let policy: AccessPolicy
    /// The age above which a price is none, seconds, if a request does not say otherwise.
    let maxAge: Int64
    /// Whether there may be one more event stream. Called on the event loop.
    let hasRoomForStream: @Sendable () -> Bool

    func responder() -> some HTTPResponder<GatewayContext> {
        let router = Router(context: GatewayContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: AccessMiddleware(policy: policy))
        addOurs(to: router)
        HistoryRoutes(daemon: daemon).add(to: router)
        addOthers(to: router)
        addMonitoring(to: router)
        addPage(to: router)
        return router.buildResponder()
    }

    // MARK: - Ours

    private func addOurs(to router: Router<GatewayContext>) {
        addPrices(to: router, "/v1/price") { list, request in
            try Problem.check(request, has: "currency", "max-age")
            let message = try Self.currency(request, in: list)
            let state = message.price.state
            guard try isCurrent(state, request, at: list.time) else {
                throw try tooOld(message, request, at: list.time)
            }
            return Representation(.object(PriceShapes.price(state, at: list.time)), oldest: state)
        }
        addPrices(to: router, "/v1/currencies") { list, request in
            try Problem.check(request, has: "currency", "max-age")
            let currencies = try list.currencies.map {
                JSON.object(
                    PriceShapes.currency(
                        $0, isCurrent: try isCurrent($0.price.state, request, at: list.time), at: list.time))
            }
            return Representation(.object(["currencies": .array(currencies)]))
        }
        router.get("/v1/status") { request, _ in
            try Problem.check(request)
            return Representation(.object(PriceShapes.status(try await daemon.status()))).response(to: request)
        }
        router.get("/v1/sources") { request, _ in
            try Problem.check(request, has: "currency")
            let code = try Self.code(request)
            // Only of a currency that is kept: each is a call of its own.
            _ = try Self.currency(request, in: try await daemon.prices(wakes: false))
            let sources = try await daemon.sources(of: code).map { JSON.object(PriceShapes.source($0)) }
            return Representation(.object(["sources": .array(sources)])).response(to: request)
        }
        router.get("/v1/watch") { request, context in
            try Problem.check(request, has: "currency", "updates")
            guard hasRoomForStream() else {
                throw Problem.unavailable("There are too many event streams.", retryAfter: 10)
            }
            let codes = try request.uri.queryParameters["currency"].map { try Self.codes(String($0), "currency") }
            var updates = WatchUpdates.ticks
            if let word = request.uri.queryParameters["updates"] {
                guard let named = WatchUpdates(rawValue: String(word)) else {
                    throw Problem(.badRequest, "updates is ticks or changes.")
                }
                updates = named
            }
            context.stream.value = EventStreams.Wish(
                currencies: codes.map(Set.init), updates: updates, lastEventID: request.headers[.lastEventID])
            return Response(
                status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"])
        }
    }

    // MARK: - Shapes that other programs read

    private func addOthers(to router: Router<GatewayContext>) {
        addPrices(to: router, "/api/v1/prices") { list, request in
            let states = try currentStates(list, request)
            return Representation(.object(PriceShapes.mempoolPrices(states)), oldest: Self.oldest(states))
        }
        addPrices(to: router, "/exrates/BTC") { list, request in
            let states = try currentStates(list, request)
            return Representation(.object(PriceShapes.rates(states)), oldest: Self.oldest(states))
        }
        // BTCPay Server has both, and wraps the list in one of them.
        addPrices(to: router, "/api/rates") { list, request in
            let states = try namedStates(list, request)
            return Representation(PriceShapes.rateList(states), oldest: Self.oldest(states))
        }
        addPrices(to: router, "/rates") { list, request in
            let states = try namedStates(list, request)
            return Representation(.object(["data": PriceShapes.rateList(states)]), oldest: Self.oldest(states))
        }
        // LNbits asks a price aggregator for it, and reads `rates.median`.
        router.get("/rate/:currency") { request, context in
            _ = try longestAge(request)
            let code = (context.parameters.get("currency") ?? "").uppercased()
            let list = try await daemon.prices(wakes: true)
            guard let message = list.currencies.first(where: { $0.currency == code }) else {
                throw Self.notKept(code, in: list)
            }
            let state = message.price.state
            guard try isCurrent(state, request, at: list.time) else {
                throw try tooOld(message, request, at: list.time)
            }
            return Representation(.object(PriceShapes.aggregate(state)), oldest: state).response(to: request)
        }
    }

    /// The states of the pairs that a request names, such as `BTC_USD,BTC_EUR`; without any, all.
    private func namedStates(_ list: PriceList, _ request: Request) throws -> [PriceState] {
        let states = try currentStates(list, request)
        guard let pairs = request.uri.queryParameters["currencyPairs"], !pairs.isEmpty else { return states }
        return pairs.uppercased().split(separator: ",").compactMap { pair in
            states.first { "BTC_\($0.currency)" == pair }
        }
    }

    // MARK: - Monitoring

    private func addMonitoring(to router: Router<GatewayContext>) {
        router.get("/metrics") { request, _ in
            let accept = request.headers[.accept] ?? ""
            let format: MetricsText.Format =
                accept.contains("application/openmetrics-text") ? .openMetrics : .prometheus
            let text = MetricsText.text(try await daemon.metrics(), as: format)
            return Representation(text, contentType: format.contentType, cacheControl: "no-store").response(
                to: request, vary: "Accept")
        }
        router.get("/healthz") { request, _ in
            let message = try Self.currency(request, in: try await daemon.prices(wakes: false))
            let freshness = message.price.state.freshness
            guard freshness == .fresh else {
                throw Problem.unavailable("The price in \(message.currency) is \(freshness.rawValue).")
            }
            return Representation(.object(["state": .string("fresh")]), cacheControl: "no-store").response(to: request)
        }
    }

    // MARK: - The page

    private func addPage(to router: Router<GatewayContext>) {
        let page = Page()
        router.get("/") { request, _ in page.response(to: request) }
        let openAPI = Representation(
            String(decoding: PackageResources.openapi_json, as: UTF8.self), contentType: "application/json",
            cacheControl: "max-age=3600")
        router.get("/openapi.json") { request, _ in openAPI.response(to: request) }
    }

    // MARK: - Prices

    /// Adds a path whose body is made of the prices. It is the same for all requests with the same target until there are newer ones.
    private func addPrices(
        to router: Router<GatewayContext>, _ path: RouterPath,
        _ body: @escaping @Sendable (PriceList, Request) throws -> Representation
    ) {
        router.get(path) { request, _ in
            // A request that is wrong resumes nothing.
            _ = try (Self.code(request), longestAge(request))
            let list = try await daemon.prices(wakes: true)
            return try list.body(of: request.uri.string) { try body(list, request) }.response(to: request)
        }
    }

    /// The currency that a request names, else the first one.
    static func currency(_ request: Request, in list: PriceList) throws -> CurrencyMessage {
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
    private func currentStates(_ list: PriceList, _ request: Request) throws -> [PriceState] {
        let states = try list.currencies.map(\.price.state).filter { try isCurrent($0, request, at: list.time) }
        guard !states.isEmpty else { throw Problem.unavailable("No price is new enough.", retryAfter: 5) }
        return states
    }

    private func isCurrent(_ state: PriceState, _ request: Request, at now: ObservationTime) throws -> Bool {
        let longest = try longestAge(request)
        return state.age(at: now).map { $0.age <= longest } ?? false
    }

    private func longestAge(_ request: Request) throws -> Duration {
        guard let text = request.uri.queryParameters["max-age"] else { return .seconds(maxAge) }
        guard let seconds = Int64(text), (1...31_536_000).contains(seconds) else {
            throw Problem(.badRequest, "max-age is a number of seconds from 1 to 31536000.")
        }
        return .seconds(seconds)
    }

    private static func oldest(_ states: [PriceState]) -> PriceState? {
        states.min { ($0.quote?.timestamp.milliseconds ?? 0) < ($1.quote?.timestamp.milliseconds ?? 0) }
    }

    private func tooOld(_ message: CurrencyMessage, _ request: Request, at now: ObservationTime) throws -> Problem {
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

    static func code(_ request: Request) throws -> String? {
        try request.uri.queryParameters["currency"].map { text in
            let codes = try codes(String(text), "currency")
            guard codes.count == 1 else { throw Problem(.badRequest, "currency is one code, such as USD.") }
            return codes[0]
        }
    }

    private static func codes(_ text: String, _ name: String) throws -> [String] {
        let codes = text.uppercased().split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard codes.count <= 32, codes.allSatisfy({ $0.wholeMatch(of: /[A-Z]{3}/) != nil }) else {
            throw Problem(.badRequest, "\(name) is a code of three letters, such as USD.")
        }
        return codes
    }
}
