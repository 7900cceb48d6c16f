import BTCPriceCore
import BTCPriceSocket

/// The file as JSON. Times are in milliseconds: of `CLOCK_BOOTTIME` if the name ends in `Boottime`, otherwise since 1970.
/// The names are those of version 0.1.0, whose files can be read.
extension QuoteFile {
    /// Absent values are omitted. Dollars are where 0.1.0 has its only price; the others are in `currencies`, which 0.1.0 ignores.
    func write(to writer: inout JSONWriter) {
        let dollars = prices.first { $0.quote.currency == Currency.usd.rawValue }
        writer.object { file in
            file.member("checksum", .string(Self.blankChecksum))
            file.member("schemaVersion", .integer(Self.schemaVersion))
            file.member("sequence", .integer(sequence))
            if let dollars { dollars.write(to: &file) } else { file.member("venues", .object([:])) }
            if prices.count > (dollars == nil ? 0 : 1) {
                file.name("currencies")
                file.object { currencies in
                    for price in prices where price.quote.currency != Currency.usd.rawValue {
                        currencies.name(price.quote.currency)
                        currencies.object { price.write(to: &$0) }
                    }
                }
            }
            file.name("rests")
            file.object { rests in
                for (source, kept) in cooldowns.sorted(by: { $0.key < $1.key }) {
                    if let json = kept.json { rests.member(source, .object(json)) }
                }
            }
        }
    }

    init(json: JSONValue) throws {
        self.init(sequence: try json.required("sequence", .count))
        // Absent from the files of the first release.
        if let rests = usable("the cooldowns", { try json.optional("rests", .object) }) {
            for (name, rest) in rests.members {
                let source = name.stringValue ?? ""
                cooldowns[source] = usable("the cooldown of \(source)") { try KeptCooldown(json: rest) }
            }
        }
        add("the price in \(Currency.usd)", json)
        if let currencies = usable("the other currencies", { try json.optional("currencies", .object) }) {
            for (name, price) in currencies.members { add("the price in \(name.stringValue ?? "")", price) }
        }
    }

    private mutating func add(_ what: String, _ json: JSONValue) {
        if let price = usable(what, { try CachedPrice(json: json) }) { prices.append(price) }
    }

    private mutating func usable<Value>(_ what: String, _ read: () throws -> Value?) -> Value? {
        do {
            return try read()
        } catch {
            unusable.append("\(what) (\((error as? Damage)?.reason ?? "\(error)"))")
            return nil
        }
    }
}

extension CachedPrice {
    /// Writes the members of an object.
    fileprivate func write(to object: inout JSONWriter) {
        object.name("quote")
        quote.write(to: &object, omitsAbsent: true)
        if let boottime = price.observedBoottime { object.member("observedBoottime", .integer(boottime.milliseconds)) }
        if let confirmation = price.confirmation { object.member("confirmation", .string(confirmation.rawValue)) }
        if let conversion = price.conversion {
            object.name("conversion")
            conversion.write(to: &object, omitsAbsent: true)
        }
        if let derivation = price.derivation {
            object.name("derived")
            derivation.write(to: &object, omitsAbsent: true)
        }
        if let learned { object.member("learned", .object(learned.json)) }
        object.name("venues")
        object.object { venues in
            var last: String?
            // An exchange has one market of a currency. Names must be different in any case, or the file could not be read.
            for kept in positions.sorted(by: { $0.market.venue < $1.market.venue }) where kept.market.venue != last {
                last = kept.market.venue
                venues.name(kept.market.venue)
                venues.object { kept.write(to: &$0) }
            }
        }
    }

    /// - Returns: `nil` if there is no quote.
    fileprivate init?(json: JSONValue) throws {
        var positions: [KeptPosition] = []
        for (source, position) in try json.required("venues", .object).members {
            // 0.1.0 wrote no pair: its sources with positions have this one.
            let pair = try position.optional("market", .text) ?? Currency.usd.pair
            positions.append(try KeptPosition(Market(source.stringValue ?? "", pair), json: position))
        }
        let observedBoottime = try json.optional("observedBoottime", .boottime)
        let conversion = try json.optional("conversion", JSONKind<Conversion>.message)
        if let conversion {
            guard Currency.usd.prices.contains(conversion.value), ResponseCheck.pegRates.contains(conversion.rate)
            else {
                throw QuoteFile.Damage("the conversion is not valid")
            }
        }
        guard let quote = try json.optional("quote", JSONKind<PriceQuote>.message) else { return nil }
        guard Currency(rawValue: quote.currency).map({ $0.prices.contains(quote.value) }) == true else {
            throw QuoteFile.Damage("the price is outside the accepted range")
        }
        let derivation = try json.optional("derived", JSONKind<Derivation>.message)
        if let derivation {
            guard Currency(rawValue: derivation.currency).map({ $0.prices.contains(derivation.value) }) == true,
                ReferenceRateTable.possible.contains(derivation.rate)
            else { throw QuoteFile.Damage("the derived price is not valid") }
        }
        self.init(
            ShownPrice(
                quote, observedBoottime: observedBoottime,
                // Absent from the files of 0.1.0.
                confirmation: try json.optional("confirmation", .text).flatMap(Confirmation.init(rawValue:)),
                conversion: conversion, derivation: derivation),
            positions: positions,
            learned: try json.optional("learned", .object).map([LearnedBasis].init(json:)))
    }
}

extension KeptPosition {
    fileprivate func write(to object: inout JSONWriter) {
        object.member("market", .string(market.pair))
        if let address { object.member("address", .string(address)) }
        if let time = position.time { object.member("time", .integer(time.milliseconds)) }
        if let sequence = position.sequence { object.member("trade", .integer(sequence)) }
    }

    fileprivate init(_ market: Market, json: JSONValue) throws {
        self.init(
            market,
            FeedPosition(
                time: try json.optional("time", .milliseconds).map { Timestamp(milliseconds: $0) },
                sequence: try json.optional("trade", .integer)),
            // Absent from the files of 1.0.
            address: try json.optional("address", .text))
    }
}

extension [LearnedBasis] {
    /// By market: the basis in millionths, and its age in milliseconds. Absent from the files of 0.1.0, which ignores it.
    fileprivate var json: JSONObject {
        var json = JSONObject()
        for basis in self { json["\(basis.market)"] = .array([.integer(basis.millionths), .integer(basis.age)]) }
        return json
    }

    fileprivate init(json: JSONValue) throws {
        self = try json.members.map { name, value in
            let names = (name.stringValue ?? "").split(separator: " ", maxSplits: 1)
            let numbers = value.arrayValue?.compactMap(\.millisecondsValue) ?? []
            guard names.count == 2, numbers.count == 2 else { throw QuoteFile.Damage("a basis is not valid") }
            return LearnedBasis(
                market: Market(String(names[0]), String(names[1])), millionths: numbers[0], age: numbers[1])
        }
    }
}

extension KeptCooldown {
    /// `nil` for a cooldown that a restart may shorten.
    fileprivate var json: JSONObject? {
        let (kind, reason): (String, String)
        switch cooldown.reason {
        case .rateLimited(let text, _): (kind, reason) = ("rateLimited", text)
        case .refused(let text): (kind, reason) = ("refused", text)
        default: return nil
        }
        let (since, until) = (cooldown.since, cooldown.until)
        return [
            "address": .string(address), "kind": .string(kind), "reason": .string(reason),
            "since": .integer(since.wall.milliseconds), "sinceBoottime": .integer(since.boottime.milliseconds),
            "strikes": .integer(Int64(cooldown.consecutiveFailures)),
            "until": .integer(until.wall.milliseconds), "untilBoottime": .integer(until.boottime.milliseconds),
        ]
    }

    fileprivate init(json: JSONValue) throws {
        let reason = try json.required("reason", .text)
        let isRefused = try json.required("kind", .text) == "refused"
        func time(_ wall: StaticString, _ boottime: StaticString) throws -> ObservationTime {
            ObservationTime(
                wall: Timestamp(milliseconds: try json.required(wall, .milliseconds)),
                boottime: try json.required(boottime, .boottime))
        }
        self.init(
            address: try json.required("address", .text),
            cooldown: SourceCooldown(
                reason: isRefused ? .refused(reason) : .rateLimited(reason, retryAfter: nil),
                since: try time("since", "sinceBoottime"), until: try time("until", "untilBoottime"),
                consecutiveFailures: Int(try json.required("strikes", .count))),
            isOfThisBoot: true)
    }
}

extension JSONKind<Int64> {
    fileprivate static var count: JSONKind<Int64> { integer.only { (0...QuoteFile.highestCount).contains($0) } }
}
