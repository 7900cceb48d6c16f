import BTCPriceCore
import BTCPriceSocket

/// Reads the prices of some markets from a response of a described exchange: a pure value.
struct TickerReader: Sendable {
    /// The places of one market's values. If the exchange has several names for the market, the first one in the body counts.
    private struct Places: Sendable {
        let market: Market
        let row: (array: JSONPointer, place: JSONPointer, value: String)?
        let price, bid, ask, time, sequence: [Place]
        let required, expected: [(place: Place, value: ExchangeDescription.Required)]
    }

    /// The elements of a body's array of rows, and those of each market.
    private struct Rows {
        let all: [JSONValue]
        let named: [String: [JSONValue]]
    }

    private let places: [Places]
    private let description: ExchangeDescription

    /// - Parameter markets: Those whose prices are wanted, the most important one first.
    init(_ description: ExchangeDescription, _ markets: [ExchangeDescription.DescribedMarket]) {
        self.description = description
        places = markets.map { market in
            func filled(_ text: String?) -> [Place] {
                // A text without {key} is the same for each key.
                var places: [Place] = []
                for key in market.keys {
                    guard let text,
                        let place = Place(market.placeholders(key: key).fill(text, escaping: JSONPointer.escaped)),
                        !places.contains(place)
                    else { continue }
                    places.append(place)
                }
                return places
            }
            func values(
                _ all: [(place: String, value: ExchangeDescription.Required)]
            ) -> [(place: Place, value: ExchangeDescription.Required)] {
                all.flatMap { place, value in filled(place).prefix(1).map { ($0, value.filled(market.placeholders())) }
                }
            }
            return Places(
                market: market.market,
                row: description.row.map { ($0.array, $0.place, market.placeholders().fill($0.value)) },
                price: filled(description.price), bid: filled(description.bid), ask: filled(description.ask),
                time: filled(description.time), sequence: filled(description.sequence),
                required: values(description.required), expected: values(description.expected))
        }
    }

    /// The prices in a response. One market that is missing does not take away the others.
    /// - Throws: If none of the prices can be read, the reason for the first market.
    func prices(_ response: HTTPResponse) throws(PriceLoadingError) -> [LoadedPrice] {
        let body = try description.body(of: response)
        let rows = rows(in: body)
        var prices: [LoadedPrice] = []
        var failure: PriceLoadingError?
        for places in places {
            do throws(PriceLoadingError) {
                prices.append(try price(places, in: body, rows, response))
            } catch {
                failure = failure ?? error
            }
        }
        guard prices.isEmpty, let failure else { return prices }
        let text = oneLine(String(decoding: response.body.prefix(500), as: UTF8.self))
        throw response.status == 200 ? description.meaning(of: text, [text], response) ?? failure : failure
    }

    /// The prices of each day in a response that has rows of several days. What can't be read is left out.
    /// - Throws: If the body is an error, or has no array of rows.
    func days(_ response: HTTPResponse) throws(PriceLoadingError) -> [LoadedPrice] {
        let body = try description.body(of: response)
        guard let rows = rows(in: body), let day = description.time.flatMap(Place.init) else {
            throw .invalidData("there is no array of rows")
        }
        var days: [String: [String: [JSONValue]]] = [:]
        for (name, elements) in rows.named {
            for element in elements {
                guard let text = day.value(in: element, body)?.stringValue else { continue }
                days[text, default: [:]][name, default: []].append(element)
            }
        }
        return days.values.flatMap { named in
            places.compactMap { places in
                try? price(places, in: body, Rows(all: [], named: named), response)
            }
        }
    }

    /// What is at each place, a line each: for who writes a description.
    func findings(_ response: HTTPResponse) -> [String] {
        guard let body = description.parsed(response) else { return [] }
        let rows = rows(in: body)
        return places.flatMap { places -> [String] in
            let part = places.row.flatMap { try? Self.row($0, rows, in: body) } ?? body
            let values = [
                ("price", places.price), ("bid", places.bid), ("ask", places.ask), ("time", places.time),
                ("sequence", places.sequence), ("require", places.required.map(\.place)),
                ("expect", places.expected.map(\.place)),
            ]
            return values.flatMap { key, places in
                places.compactMap { place in place.value(in: part, body).map { "\(key) \(place): \($0.summary)" } }
            }
        }
    }

    private func price(
        _ places: Places, in body: JSONValue, _ rows: Rows?, _ response: HTTPResponse
    ) throws(PriceLoadingError) -> LoadedPrice {
        // What the body says of itself first: without it, there may be no row.
        for (place, required) in places.required where place.isInBody {
            try Self.check(place.value(in: body, body), required, place)
        }
        let part = try places.row.map { row throws(PriceLoadingError) in try Self.row(row, rows, in: body) } ?? body
        for (place, required) in places.required where !place.isInBody {
            try Self.check(place.value(in: part, body), required, place)
        }
        for (place, expected) in places.expected {
            if let found = place.value(in: part, body) { try Self.check(found, expected, place) }
        }
        func decimal(_ places: [Place]) throws(PriceLoadingError) -> Price {
            let (place, value) = try Self.found(places, part, body)
            guard let price = value.decimal, price > 0 else {
                throw .invalidData("\(place) is \(value.summary), which is not a price")
            }
            return price
        }
        func quotes() throws(PriceLoadingError) -> Quotes {
            try Quotes(bid: decimal(places.bid), ask: decimal(places.ask))
        }
        let value: Price
        let known: Quotes?
        if places.price.isEmpty {
            let quotes = try quotes()
            (value, known) = (try quotes.middle(), quotes)
        } else {
            let last = try decimal(places.price)
            // One side of a thin market may be empty.
            known = places.bid.isEmpty ? nil : try? quotes()
            value = try known.map { quotes throws(PriceLoadingError) in try quotes.clamped(last) } ?? last
        }
        var position = FeedPosition()
        if !places.sequence.isEmpty || !places.time.isEmpty {
            position = try self.position(places, part, body, response)
        }
        return LoadedPrice(
            places.market, value, position: position, halfSpread: known?.halfSpread ?? 0,
            quotes: known.map { LoadedQuotes(bid: $0.bid, ask: $0.ask) })
    }

    private func position(
        _ places: Places, _ part: JSONValue, _ body: JSONValue, _ response: HTTPResponse
    ) throws(PriceLoadingError) -> FeedPosition {
        var sequence: Int64?
        if !places.sequence.isEmpty {
            let (place, value) = try Self.found(places.sequence, part, body)
            guard let number = value.wholeNumber else {
                throw .invalidData("\(place) is \(value.summary), which is not a whole number")
            }
            sequence = number
        }
        guard let meaning = description.timeMeaning, !places.time.isEmpty else {
            return FeedPosition(sequence: sequence)
        }
        let (place, value) = try Self.found(places.time, part, body)
        guard let time = value.venueTime else {
            throw .invalidData(
                "\(place) is \(value.summary), which is not a time such as 2026-08-25T14:30:00Z or seconds since 1970")
        }
        let now = response.time.milliseconds
        let isMended =
            description.timeOffsetMeaning == .sometimes
            && abs(time - now) < abs(time + description.timeOffset - now)
        let shifted = Timestamp(milliseconds: isMended ? time : time + description.timeOffset)
        guard meaning == .reply else { return FeedPosition(time: shifted, sequence: sequence) }
        // The time of a response shows only whether a cache has kept it.
        let age = response.time.milliseconds - shifted.milliseconds
        guard age <= HTTPResponse.oldest * 1000 else { throw .staleData("the response was made \(age / 1000) s ago") }
        return FeedPosition(sequence: sequence)
    }

    private static func check(
        _ found: JSONValue?, _ wanted: ExchangeDescription.Required, _ place: Place
    ) throws(PriceLoadingError) {
        guard let found, wanted.matches(found) else {
            throw .invalidData("\(place) is \(found?.summary ?? "missing"), not \(wanted)")
        }
    }

    /// The first of these places that is in the body.
    private static func found(
        _ places: [Place], _ part: JSONValue, _ body: JSONValue
    ) throws(PriceLoadingError) -> (place: Place, value: JSONValue) {
        for place in places {
            if let value = place.value(in: part, body), !value.isNull { return (place, value) }
        }
        throw .invalidData("there is no \(places[0])\(places[0].hint(in: part, body))")
    }

    /// The rows of a body, read once for all markets; `nil` if there is no array.
    private func rows(in body: JSONValue) -> Rows? {
        guard let row = description.row, let all = row.array.value(in: body)?.arrayValue else { return nil }
        let wanted = Set(places.compactMap(\.row?.value))
        var named: [String: [JSONValue]] = [:]
        for element in all {
            // It may be a number.
            let value = row.place.value(in: element)
            guard let name = value?.stringValue ?? value?.integerValue.map(String.init), wanted.contains(name)
            else { continue }
            named[name, default: []].append(element)
        }
        return Rows(all: all, named: named)
    }

    /// The only row of a market.
    private static func row(
        _ row: (array: JSONPointer, place: JSONPointer, value: String), _ rows: Rows?, in body: JSONValue
    ) throws(PriceLoadingError) -> JSONValue {
        guard let rows else {
            throw .invalidData("there is no array at \(row.array.described)\(row.array.hint(in: body))")
        }
        let matching = rows.named[row.value] ?? []
        guard matching.count < 2 else {
            throw .invalidData("\(matching.count) rows have \(row.value) at \(row.place.described)")
        }
        guard let found = matching.first else {
            let names = rows.all.prefix(100).compactMap { row.place.value(in: $0)?.summary }.prefix(8)
                .joined(separator: ", ")
            let there =
                names.isEmpty
                ? rows.all.first.map { row.place.hint(in: $0, "a row") } ?? "" : " (there are \(oneLine(names)))"
            throw .invalidData("no row has \(row.value) at \(row.place.described)\(there)")
        }
        return found
    }
}

/// A pointer into the row of a market, or into the whole body if it begins with `//`.
struct Place: Sendable, Hashable, CustomStringConvertible {
    private let pointer: JSONPointer
    let isInBody: Bool

    init?(_ text: String) {
        isInBody = text.hasPrefix("//")
        guard let pointer = JSONPointer(isInBody ? String(text.dropFirst()) : text) else { return nil }
        self.pointer = pointer
    }

    func value(in row: JSONValue, _ body: JSONValue) -> JSONValue? {
        pointer.value(in: isInBody ? body : row)
    }

    func hint(in row: JSONValue, _ body: JSONValue) -> String {
        pointer.hint(in: isInBody ? body : row)
    }

    var description: String { (isInBody ? "/" : "") + pointer.described }
}

extension JSONPointer {
    /// What a value has instead: ` (/data has last, bid, ask)`.
    fileprivate func hint(in document: JSONValue, _ name: String = "the body") -> String {
        let (place, value) = nearest(in: document)
        let names = value.members.prefix(8).compactMap(\.name.stringValue)
        let content = names.isEmpty ? value.summary : oneLine(names.joined(separator: ", "))
        return " (\(place.tokens.isEmpty ? name : place.description) has \(content))"
    }
}
