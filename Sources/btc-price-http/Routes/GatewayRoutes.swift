import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import NIOCore
import NIOHTTP1

struct GatewayRoutes: Sendable {
    let daemon: DaemonClient
    let policy: AccessPolicy
    /// The age above which a price is treated as missing, seconds, unless the request sets another one.
    let maxAge: Int64
    /// What else is required of a price, unless the request says otherwise.
    let requirements: PriceRequirements
    /// Whether another event stream is allowed. Called on the event loop.
    let hasRoomForStream: @Sendable () -> Bool

    private let page = Page()
    private let openAPI = Representation(
        String(decoding: PackageResources.openapi_json, as: UTF8.self), contentType: "application/json",
        cacheControl: "max-age=3600")

    /// Returns the response to any request.
    func response(to request: GatewayRequest) async -> GatewayResponse {
        var response: GatewayResponse
        do throws(Problem) {
            try policy.check(request)
            if let preflight = policy.preflight(request) {
                response = preflight
            } else {
                response = try await route(request)
            }
        } catch {
            response = error.response
        }
        policy.mark(&response, to: request)
        return response
    }

    private func route(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let history = HistoryRoutes(
            daemon: daemon,
            requirements: PriceRequirements(
                trust: requirements.trust, maxUncertainty: requirements.maxUncertainty, maxAge: .seconds(maxAge)))
        switch request.path.joined(separator: "/") {
        case "": return page.response(to: request)
        case "openapi.json": return openAPI.response(to: request)
        case "v1/price": return try await price(request)
        case "v1/currencies": return try await currencies(request)
        case "v1/status": return try await status(request)
        case "v1/sources": return try await sources(request)
        case "v1/watch": return try await watch(request)
        case "v1/history": return try await history.history(request)
        case "v1/at": return try await history.price(request)
        case "v1/day": return try await history.day(request)
        case "v1/events": return try await history.events(request)
        // Shapes that other programs read. These two are mempool's.
        case "api/v1/prices": return try await states(request) { .object(PriceShapes.mempoolPrices($0)) }
        case "api/v1/historical-price": return try await history.historicalPrices(request)
        case "exrates/BTC": return try await states(request) { .object(PriceShapes.rates($0)) }
        // These two are BTCPay Server's. The second one wraps the list.
        case "api/rates": return try await pairs(request) { PriceShapes.rateList($0) }
        case "rates": return try await pairs(request) { .object(["data": PriceShapes.rateList($0)]) }
        // LNbits requests this from a price aggregator and reads `rates.median`.
        case _ where request.path.count == 2 && request.path[0] == "rate":
            return try await aggregate(request, request.path[1].uppercased())
        case "metrics": return try await metrics(request)
        case "healthz": return try await health(request)
        default: throw Problem(.notFound, "There is nothing here; see /openapi.json.")
        }
    }

    // MARK: - Ours

    private func price(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "max-age", "confirmed", "max-uncertainty")
        let code = try Self.code(request)
        let (state, list) = try await current(request, code)
        return list.bodies.body(of: "price") {
            Representation(.object(PriceShapes.price(state, at: list.time)), oldest: state)
        }.response(to: request)
    }

    private func currencies(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "max-age")
        _ = try Self.code(request)
        let list = try await prices(request)
        return list.bodies.body(of: "currencies") {
            let currencies = list.currencies.map { message in
                JSON.object(
                    PriceShapes.currency(message, isCurrent: list.tooOld[message.currency] == nil, at: list.time))
            }
            return Representation(.object(["currencies": .array(currencies)]))
        }.response(to: request)
    }

    private func status(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request)
        return Representation(.object(PriceShapes.status(try await daemon.status()))).response(to: request)
    }

    private func sources(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency")
        let code = try Self.code(request)
        // Only for a currency that is kept, because each currency needs a separate call.
        _ = try await daemon.kept().currency(code)
        let sources = try await daemon.sources(of: code).map { JSON.object(PriceShapes.source($0)) }
        return Representation(.object(["sources": .array(sources)])).response(to: request)
    }

    private func watch(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "updates")
        guard hasRoomForStream() else { throw EventStreams.full }
        let codes = try request["currency"].map { (text) throws(Problem) in try Self.codes(text, "currency") }
        guard let updates = WatchUpdates(rawValue: request["updates"] ?? WatchUpdates.ticks.rawValue) else {
            throw Problem(.badRequest, "updates is ticks or changes.")
        }
        // The stream itself reports that the daemon can't be reached.
        if let codes, let kept = try? await daemon.kept() {
            for code in codes { _ = try kept.currency(code) }
        }
        return GatewayResponse(
            headers: ["content-type": "text/event-stream", "cache-control": "no-store"],
            stream: EventSubscription(
                currencies: codes.map(Set.init), updates: updates, lastEventID: request.header("last-event-id")))
    }

    // MARK: - Shapes that other programs read

    private func aggregate(_ request: GatewayRequest, _ code: String) async throws(Problem) -> GatewayResponse {
        let (state, list) = try await current(request, code)
        return list.bodies.body(of: "rate") { Representation(.object(PriceShapes.aggregate(state)), oldest: state) }
            .response(to: request)
    }

    /// A response with the states of the pairs that a request names, such as `BTC_USD,BTC_EUR`; all states if it names none.
    private func pairs(
        _ request: GatewayRequest, _ body: ([PriceState]) -> JSON
    ) async throws(Problem) -> GatewayResponse {
        let named = request["currencyPairs"].flatMap { $0.isEmpty ? nil : $0.uppercased().split(separator: ",") }
        return try await states(request, named?.filter { $0.hasPrefix("BTC_") }.map { String($0.dropFirst(4)) }, body)
    }

    /// A response with the states whose price is not too old, and is as required.
    /// - Parameter named: The currencies in it, as far as they are kept; `nil` for all.
    private func states(
        _ request: GatewayRequest, _ named: [String]? = nil, _ body: ([PriceState]) -> JSON
    ) async throws(Problem) -> GatewayResponse {
        let requirements = try requirements(of: request)
        let list = try await prices(request)
        let young = list.currencies.map(\.price.state).filter { $0.quote != nil && list.tooOld[$0.currency] == nil }
        guard !young.isEmpty else { throw Problem.unavailable("No price is new enough.", retryAfter: 5) }
        let wanted = named.map { $0.compactMap { code in young.first { $0.currency == code } } } ?? young
        let refusals = wanted.map { requirements.refusal(of: $0, at: list.time) }
        let states = zip(wanted, refusals).compactMap { $1 == nil ? $0 : nil }
        if states.isEmpty, let refusal = refusals.first ?? nil { throw Self.refused(refusal) }
        let form = "\(request.path.joined(separator: "/")) \(states.map(\.currency).joined(separator: ","))"
        return list.bodies.body(of: form) {
            let oldest = states.min {
                ($0.quote?.timestamp.milliseconds ?? 0) < ($1.quote?.timestamp.milliseconds ?? 0)
            }
            return Representation(body(states), oldest: oldest)
        }.response(to: request)
    }

    private static func refused(_ refusal: PriceRequirements.Refusal) -> Problem {
        .unavailable("The price \(refusal.predicate).", retryAfter: 5)
    }

    private func requirements(of request: GatewayRequest) throws(Problem) -> PriceRequirements {
        var requirements = requirements
        if let text = request["confirmed"] {
            guard let trust = ["0": PriceRequirements.Trust.all, "1": .usual, "strict": .confirmed][text] else {
                throw Problem(.badRequest, "confirmed is 0, 1 or strict.")
            }
            requirements.trust = trust
        }
        if let text = request["max-uncertainty"] {
            guard let percent = PriceRequirements.percent(text) else {
                throw Problem(.badRequest, "max-uncertainty is a percentage from 0.0001 to 100, such as 0.5.")
            }
            requirements.maxUncertainty = percent
        }
        return requirements
    }

    // MARK: - Monitoring and prices

    private func metrics(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let isOpenMetrics = request.preferred(["text/plain", "application/openmetrics-text"]) != "text/plain"
        let format: MetricsText.Format = isOpenMetrics ? .openMetrics : .prometheus
        let text = MetricsText.text(try await daemon.metrics(), as: format)
        return Representation(text, contentType: format.contentType, cacheControl: "no-store").response(
            to: request, vary: "Accept")
    }

    private func health(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let message = try await daemon.kept().currency(try Self.code(request))
        if let reason = PriceShapes.reason(of: message.price.state) {
            let freshness = message.price.state.freshness
            throw Problem.unavailable("The price in \(message.currency) is \(freshness.rawValue): \(reason).")
        }
        return Representation(.object(["state": .string("fresh")]), cacheControl: "no-store").response(to: request)
    }

    /// All prices. The daemon has judged their age.
    private func prices(_ request: GatewayRequest) async throws(Problem) -> PriceList {
        // An invalid request must not resume the ticks.
        let maxAge = try maxAge(request)
        // Here, a daemon that hangs is found out sooner.
        _ = try await daemon.kept()
        return try await daemon.prices(maxAge: maxAge, for: request.client)
    }

    /// The price in a currency, which is not too old and is as required, and the list that it is from.
    /// - Parameter code: ISO 4217; `nil` for the first currency.
    private func current(
        _ request: GatewayRequest, _ code: String?
    ) async throws(Problem) -> (state: PriceState, list: PriceList) {
        let (maxAge, requirements) = (try maxAge(request), try requirements(of: request))
        let currency = try await daemon.kept().currency(code).currency
        let list = try await daemon.prices(in: currency, maxAge: maxAge, for: request.client)
        let state = try list.currency(currency).price.state
        let reason = PriceShapes.reason(of: state).map { ": \($0)" } ?? ""
        guard state.quote != nil else {
            throw .unavailable("There is no price in \(currency) yet\(reason).", retryAfter: 5)
        }
        guard let old = list.tooOld[currency] else {
            if let refusal = requirements.refusal(of: state, at: list.time) { throw Self.refused(refusal) }
            return (state, list)
        }
        guard let age = old.age?.components.seconds else {
            throw .unavailable("The age of the price in \(currency) is not known\(reason).", retryAfter: 5)
        }
        throw .unavailable(
            "The price in \(currency) is \(age) s old, more than max-age allows (\(maxAge) s)\(reason).", retryAfter: 5)
    }

    // MARK: - Parameters

    private func maxAge(_ request: GatewayRequest) throws(Problem) -> Int64 {
        guard let text = request["max-age"] else { return maxAge }
        guard let seconds = Int64(text), (1...31_536_000).contains(seconds) else {
            throw Problem(.badRequest, "max-age is a number of seconds from 1 to 31536000.")
        }
        return seconds
    }

    static func code(_ request: GatewayRequest) throws(Problem) -> String? {
        guard let text = request["currency"] else { return nil }
        let codes = try codes(text, "currency")
        guard codes.count == 1 else { throw Problem(.badRequest, "currency is one code, such as USD.") }
        return codes[0]
    }

    private static func codes(_ text: String, _ name: String) throws(Problem) -> [String] {
        let codes = text.uppercased().split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard codes.count <= 32,
            codes.allSatisfy({ $0.utf8.count == 3 && $0.isWord(with: "") && !$0.contains(where: \.isNumber) })
        else {
            throw Problem(.badRequest, "\(name) is a code of three letters, such as USD.")
        }
        return codes
    }
}

/// The page: one HTML file. Its policy allows nothing but the style and the script that are in it, by their digests, and requests to
/// the gateway itself (W3C, Content Security Policy Level 3).
struct Page: Sendable {
    /// The SHA-256 of what is between the tags in index.html. Tests/System/230-http.py compares them with the page.
    private static let digests = (
        script: "ogIaNHnTjYkgBRYi59WHQBeCNMSD2BjwX0namY06b1Q=",
        style: "TQ7X/GVf5+qBfRqx1I2US4R02BfGrP0AqRP992sP0wE="
    )
    private static let policy =
        "default-src 'none'; connect-src 'self'; img-src data:; script-src 'sha256-\(digests.script)'; "
        + "style-src 'sha256-\(digests.style)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private let representation = Representation(
        String(decoding: PackageResources.index_html, as: UTF8.self), contentType: "text/html; charset=utf-8",
        cacheControl: "no-cache")

    func response(to request: GatewayRequest) -> GatewayResponse {
        var response = representation.response(to: request)
        response.headers.add(name: "content-security-policy", value: Self.policy)
        response.headers.add(name: "referrer-policy", value: "no-referrer")
        return response
    }
}
