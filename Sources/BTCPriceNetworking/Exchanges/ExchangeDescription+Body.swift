package import BTCPriceCore
import BTCPriceSocket

extension ExchangeDescription {
    /// The markets that a request is for; none if no market of this exchange has such a request.
    /// - Parameter target: The path and the query.
    package func requested(by target: String) -> [Market] {
        let mark = "{names}"
        guard let place = self.target.start(of: mark) else {
            return markets.filter { url(for: [$0], at: "") == target }.map(\.market)
        }
        // The names are at the end of what is before and after them.
        let (start, end) = (self.target[..<place], self.target[place...].dropFirst(mark.count))
        guard !end.holds(mark), target.hasPrefix(start), target.hasSuffix(end) else { return [] }
        let names = target.dropFirst(start.count).dropLast(end.count).split(separator: ",")
        return markets.filter { names.contains($0.name[...]) }.map(\.market)
    }

    /// The body of a response with these prices, each at the place where this description looks for it: for a simulated exchange.
    /// - Parameters:
    ///   - prices: The prices as decimal text.
    ///   - time: The exchange's clock.
    ///   - sequence: The number of the trade.
    package func body(prices: [(market: Market, price: String)], time: Timestamp, sequence: Int64) -> [UInt8] {
        var body = BodyNode.none
        for (index, (market, price)) in prices.enumerated() {
            guard let market = markets.first(where: { $0.market == market }) else { continue }
            let placeholders = market.placeholders(key: market.keys[0])
            var values: [(place: String, value: JSON)] = []
            func add(_ place: String?, _ value: JSON) {
                if let place { values.append((placeholders.fill(place, escaping: JSONPointer.escaped), value)) }
            }
            add(self.price, .string(price))
            add(bid, .string(price))
            add(ask, .string(price))
            add(self.time, .string("\(time.milliseconds - timeOffset)"))
            add(sequence == 0 ? nil : self.sequence, .number("\(sequence)"))
            for (place, required) in self.required {
                switch required.filled(placeholders) {
                case .text(let text): add(place, .string(text))
                case .integer(let number): add(place, .number("\(number)"))
                case .flag(let isOn): add(place, .bool(isOn))
                }
            }
            var prefix: [String] = []
            if let row {
                prefix = row.array.tokens + ["\(index)"]
                body.set(prefix + row.place.tokens, .string(placeholders.fill(row.value)))
            }
            for (place, value) in values {
                let isInBody = place.hasPrefix("//")
                let pointer = JSONPointer(isInBody ? String(place.dropFirst()) : place)
                body.set((isInBody ? [] : prefix) + (pointer?.tokens ?? []), value)
            }
        }
        return Array(JSONValue(body.json).text)
    }
}

/// A JSON value that is built from values at places.
private indirect enum BodyNode {
    case none
    case leaf(JSON)
    case array([BodyNode])
    case object([(name: String, value: BodyNode)])

    /// Puts a value at a place. A token that is a number makes an array.
    mutating func set(_ tokens: [String], _ value: JSON) {
        guard let token = tokens.first else {
            self = .leaf(value)
            return
        }
        let rest = Array(tokens.dropFirst())
        if let index = Int(token), index < 100, !isObject {
            var elements = if case .array(let elements) = self { elements } else { [BodyNode]() }
            while elements.count <= index { elements.append(.none) }
            elements[index].set(rest, value)
            self = .array(elements)
        } else {
            var members = if case .object(let members) = self { members } else { [(name: String, value: BodyNode)]() }
            if let index = members.firstIndex(where: { $0.name == token }) {
                members[index].value.set(rest, value)
            } else {
                var child = BodyNode.none
                child.set(rest, value)
                members.append((token, child))
            }
            self = .object(members)
        }
    }

    private var isObject: Bool {
        if case .object = self { true } else { false }
    }

    var json: JSON {
        switch self {
        case .none: .null
        case .leaf(let value): value
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members):
            .object(members.reduce(into: JSONObject()) { $0[$1.name] = $1.value.json })
        }
    }
}
