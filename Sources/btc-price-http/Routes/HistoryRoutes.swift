import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import NIOHTTP1

struct HistoryRoutes: Sendable {
    /// The maximum number of candles in a response.
    private static let most = 2000

    let daemon: DaemonClient
    /// What is required of a price that a rate is made of, with its age.
    let requirements: PriceRequirements

    func history(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "since", "until", "step", "format")
        let query = try Self.query(request)
        let known = try await daemon.history(query, for: request.client)
        let accepted = request.preferred(["application/json", "text/csv"])
        let format = request["format"] ?? (accepted == "text/csv" ? "csv" : "json")
        guard ["json", "csv"].contains(format) else { throw Problem(.badRequest, "format is json or csv.") }
        // If the search for a coarser step fails, the candles are still sent.
        let coarser = format == "csv" ? nil : try? await coarser(query, than: known, for: request.client)
        var response = known.bodies.body(of: "\(format) \(coarser?.rawValue ?? "")") {
            if format == "csv" {
                return Representation(
                    PriceShapes.csv(known.candles, of: known.currency),
                    contentType: "text/csv; charset=utf-8; header=present")
            }
            return Representation(
                .object([
                    "currency": .string(known.currency), "step": .string(query.step.rawValue),
                    "candles": .array(known.candles.map { .object(PriceShapes.candle($0)) }),
                    "next": known.next.map { .string(HTTPDate.rfc3339($0.milliseconds)) } ?? .null,
                    "coarser": coarser.map { .string($0.rawValue) } ?? .null,
                ]))
        }.response(to: request, vary: "Accept")
        // A table has no member that says where it goes on (RFC 8288).
        if format == "csv", let next = known.next {
            let until = query.to.map { "&until=\(HTTPDate.rfc3339($0.milliseconds))" } ?? ""
            response.headers.add(
                name: "link",
                value: "<?currency=\(known.currency)&step=\(Self.name(of: query.step))&format=csv"
                    + "&since=\(HTTPDate.rfc3339(next.milliseconds))\(until)>; rel=\"next\"")
        }
        return response
    }

    func price(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "time", "currency", "max-step")
        let maxStep = try Self.step("max-step", of: request)
        guard let text = request["time"] else {
            throw Problem(.badRequest, "time is required, such as 2026-08-25T14:30:00Z.")
        }
        let time = try Self.time(text, "time")
        let (known, currency) = try await daemon.price(
            at: .init(time: time, currency: try GatewayRoutes.code(request)), for: request.client)
        guard let known else { throw Problem(.notFound, "No price is recorded for that time.") }
        if let maxStep, known.isLess(than: maxStep) { throw Self.tooCoarse(known, currency) }
        return Representation(
            .object([
                "currency": .string(currency), "time": .string(HTTPDate.rfc3339(time.milliseconds)),
                "price": .string(known.price.description), "step": .string(known.step.rawValue),
                "candle": .object(PriceShapes.candle(known.candle)), "approximate": .bool(known.isApproximate),
            ])
        ).response(to: request)
    }

    func day(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency")
        let currency = try await daemon.kept().currency(try GatewayRoutes.code(request)).currency
        guard let day = try await daemon.day(of: currency) else {
            throw Problem(.notFound, "No price of the last 24 hours is known.")
        }
        var body: JSONObject = ["currency": .string(currency)]
        for member in PriceShapes.day(day).members { body[member.name] = member.value }
        return Representation(.object(body)).response(to: request)
    }

    func events(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        try Problem.check(request, has: "currency", "since", "until", "after")
        let until = try request["until"].map { (text) throws(Problem) in try Self.time(text, "until") }
        let since = try Self.time(request["since"] ?? "24h", "since")
        guard since < until ?? .now else { throw Problem(.badRequest, "since must be before until.") }
        let after = try request["after"].map { (text) throws(Problem) in try Self.time(text, "after") }
        let code = try GatewayRoutes.code(request)
        if code != nil { _ = try await daemon.kept().currency(code) }
        let (events, next) = try await daemon.events(
            EventQuery(currency: code, from: since, to: until, after: after), for: request.client)
        return Representation(
            .object([
                "events": .array(events.map { .object(PriceShapes.event($0)) }),
                "next": next.map { .string(HTTPDate.rfc3339($0.milliseconds)) } ?? .null,
            ])
        ).response(to: request)
    }

    /// mempool's `/api/v1/historical-price`: the prices at a time, or one for each day.
    func historicalPrices(_ request: GatewayRequest) async throws(Problem) -> GatewayResponse {
        let list = try await daemon.kept()
        let code = try GatewayRoutes.code(request)
        let codes = code == nil ? list.currencies.map(\.currency) : [try list.currency(code).currency]
        var prices: [Int64: JSONObject] = [:]
        var longest: Candle.Step?
        var tooCoarse: (PriceAt, String)?
        let maxStep = try Self.step("max-step", of: request)
        if let text = request["timestamp"] {
            guard let second = Int64(text), (0...253_402_300_799).contains(second) else {
                throw Problem(.badRequest, "timestamp is a number of seconds since 1970.")
            }
            for code in codes {
                let (known, _) = try await daemon.price(
                    at: .init(time: Timestamp(milliseconds: second * 1000), currency: code), for: request.client)
                guard let known else { continue }
                if let maxStep, known.isLess(than: maxStep) {
                    tooCoarse = (known, code)
                    continue
                }
                longest = max(longest ?? known.step, known.step)
                prices[second, default: ["time": .integer(second)]][code] = .number(known.price.description)
            }
            if prices.isEmpty, let (known, code) = tooCoarse { throw Self.tooCoarse(known, code) }
        } else {
            if let maxStep, maxStep < .day {
                throw Problem(.notFound, "Without timestamp, prices are of days, which are longer than max-step.")
            }
            let from = list.time.wall.milliseconds - Int64(Self.most) * Candle.Step.day.seconds * 1000
            for code in codes {
                let known = try await daemon.history(
                    HistoryQuery(
                        currency: code, from: Timestamp(milliseconds: max(0, from) / 86_400_000 * 86_400_000),
                        to: Timestamp(milliseconds: list.time.wall.milliseconds / 86_400_000 * 86_400_000 + 86_400_000),
                        step: .day, limit: Self.most, more: true), for: request.client)
                // The price at the start, as with `timestamp`. A small part of a day may not have it.
                for candle in known.candles where candle.isEnough(.day) {
                    longest = .day
                    prices[candle.start, default: ["time": .integer(candle.start)]][code] =
                        .number(candle.open.description)
                }
            }
        }
        // A price that is not shown makes no rate.
        let current = list.currencies.map(\.price.state).filter { requirements.refusal(of: $0, at: list.time) == nil }
        var body: JSONObject = [
            "prices": .array(prices.sorted { $0.key > $1.key }.map { .object($0.value) }),
            "exchangeRates": .object(PriceShapes.exchangeRates(current)),
        ]
        if let longest { body["step"] = .string(longest.rawValue) }
        return Representation(.object(body)).response(to: request)
    }

    /// The shortest step in which more of a span is known; `nil` if there is none.
    private func coarser(
        _ query: HistoryQuery, than known: DaemonClient.Candles, for client: String
    ) async throws(Problem) -> Candle.Step? {
        // A part of a long history says nothing about the rest.
        guard let from = query.from, known.next == nil else { return nil }
        let coverage = HistoryCoverage(from: from, to: min(query.to ?? .now, .now))
        let less = coverage.seconds(in: known.candles, query.step)
        guard coverage.isPoor(less, query.step) else { return nil }
        for step in Candle.Step.allCases where step > query.step {
            var longer = query
            longer.step = step
            let candles = try await daemon.history(longer, for: client).candles
            if coverage.knowsMore(coverage.seconds(in: candles, step), than: less) { return step }
        }
        return nil
    }

    private static func tooCoarse(_ known: PriceAt, _ currency: String) -> Problem {
        let part = PriceTexts.coverage(of: known.candle, minutes: known.step.minutes).map { "\($0) of " } ?? ""
        let (low, high) = (known.candle.low, known.candle.high)
        return Problem(
            .notFound,
            "Only \(part)the \(known.step) is known, from \(low) to \(high) \(currency), which max-step does not allow."
        )
    }

    // MARK: - Parameters

    private static let steps = ["1s": Candle.Step.second, "1m": .minute, "1h": .hour, "1d": .day]

    private static func name(of step: Candle.Step) -> String { steps.first { $0.value == step }?.key ?? "" }

    /// Reads `step`, or `max-step`: the longest candle that is precise enough. `nil` if it is absent.
    private static func step(_ name: String, of request: GatewayRequest) throws(Problem) -> Candle.Step? {
        guard let text = request[name] else { return nil }
        guard let step = steps[text] else { throw Problem(.badRequest, "\(name) is 1s, 1m, 1h or 1d.") }
        return step
    }

    private static func query(_ request: GatewayRequest) throws(Problem) -> HistoryQuery {
        let until = try request["until"].map { (text) throws(Problem) in try time(text, "until") }
        let since = try time(request["since"] ?? "24h", "since")
        guard since < until ?? .now else { throw Problem(.badRequest, "since must be before until.") }
        let step = try step("step", of: request) ?? .hour
        return HistoryQuery(
            currency: try GatewayRoutes.code(request), from: since, to: until, step: step, limit: most, more: true)
    }

    /// Reads a time, in UTC if it has no zone. It is cut to whole seconds, so that requests within the same second share a call.
    private static func time(_ text: String, _ name: String) throws(Problem) -> Timestamp {
        do throws(ReaderTime.Mistake) {
            let read = try ReaderTime.reading(text, isUTC: true, now: .now).time
            return Timestamp(milliseconds: read.wholeSeconds * 1000)
        } catch {
            throw Problem(.badRequest, "\(name) is a time such as 24h, 2026-08-25 or 2026-08-25T14:30:00Z.")
        }
    }
}

extension Timestamp {
    fileprivate static var now: Timestamp { ObservationTime.now().wall }
}
