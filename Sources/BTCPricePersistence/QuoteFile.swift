import BTCPriceCore
import FoundationEssentials

/// The content of `last-quote.json`: readable JSON with a schema version, a save sequence and a checksum over the whole file.
struct QuoteFile: Equatable {
    /// Why a file's content is not one of ours.
    struct Damage: Error, Equatable {
        let reason: String

        init(_ reason: String) {
            self.reason = reason
        }
    }

    /// The schema that is written, and the newest that is read.
    static let schemaVersion = 1
    /// More than a daemon counts to in its life.
    static let highestCount: Int64 = 1 << 48

    /// Counts the saves, over restarts: of two copies the higher one is newer, whatever the wall clock did in between.
    var sequence: Int64
    /// `nil` where there never was one.
    var price: CachedPrice?
    /// The rests that a restart must not cut short, by the source's name.
    var rests: [String: KeptRest] = [:]

    /// The file's bytes.
    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        var bytes = Array(try encoder.encode(Document(self)))
        bytes.append(UInt8(ascii: "\n"))
        guard let place = Self.checksumPlace(in: bytes) else { throw Damage("no place for the checksum") }
        bytes.replaceSubrange(place, with: Self.hexadecimal(CRC32.checksum(bytes)).utf8)
        return bytes
    }

    /// - Throws: ``Damage`` for whatever was not written by ``encoded()``, to the last byte.
    init(decoding bytes: [UInt8]) throws(Damage) {
        guard let place = Self.checksumPlace(in: bytes) else { throw Damage("no checksum") }
        let found = String(decoding: bytes[place], as: UTF8.self)
        var blanked = bytes
        blanked.replaceSubrange(place, with: Document.blankChecksum.utf8)
        guard found == Self.hexadecimal(CRC32.checksum(blanked)) else { throw Damage("the checksum does not fit") }
        let document: Document
        do {
            let schema = try JSONDecoder().decode(Schema.self, from: Data(bytes)).schemaVersion
            guard schema == Self.schemaVersion else { throw Damage("schema version \(schema) is not known here") }
            document = try JSONDecoder().decode(Document.self, from: Data(bytes))
        } catch let damage as Damage {
            throw damage
        } catch {
            throw Damage("not the expected JSON")
        }
        try document.checkNumbers()
        sequence = document.sequence
        price = try document.price()
        rests = document.rests.mapValues(\.kept)
    }

    init(sequence: Int64, price: CachedPrice?, rests: [String: KeptRest] = [:]) {
        self.sequence = sequence
        self.price = price
        self.rests = rests
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    /// Where the eight digits of the checksum stand. The key sorts first, so that it is found near the start.
    private static func checksumPlace(in bytes: [UInt8]) -> Range<Int>? {
        let opening = Array("{\n  \"checksum\" : \"".utf8)
        let end = opening.count + Document.blankChecksum.utf8.count
        guard bytes.count > end, bytes.starts(with: opening), bytes[end] == UInt8(ascii: "\"") else { return nil }
        return opening.count..<end
    }
}

private struct Schema: Decodable {
    var schemaVersion: Int
}

/// The file as JSON. `checksum` stands first in the order of keys, and no other key may come before it.
private struct Document: Codable {
    static let blankChecksum = "00000000"

    struct Quote: Codable {
        var value: String
        var currency: String
        var timestamp: Int64
        var source: String
        var market: String
    }

    /// Of a quote that was read in USDT: the value as it was read, and what it was multiplied by.
    struct Conversion: Codable {
        var value: String
        var rate: String
        var sources: [String]
        var measuredBoottime: Int64
    }

    struct Mark: Codable {
        var time: Int64?
        var trade: Int64?
    }

    /// Times are milliseconds: since 1970, and of `CLOCK_BOOTTIME` where the name says so.
    struct Rest: Codable {
        var address: String
        var kind: String
        var reason: String
        var since: Int64
        var sinceBoottime: Int64
        var strikes: Int
        var until: Int64
        var untilBoottime: Int64
    }

    var checksum = Self.blankChecksum
    var conversion: Conversion?
    var observedBoottime: Int64?
    var quote: Quote?
    var rests: [String: Rest]
    var schemaVersion = QuoteFile.schemaVersion
    var sequence: Int64
    var venues: [String: Mark]

    init(_ file: QuoteFile) {
        quote = file.price.map(\.quote).map { quote in
            Quote(
                value: quote.value.description, currency: quote.currency, timestamp: quote.timestamp.milliseconds,
                source: quote.source, market: quote.market)
        }
        conversion = file.price?.conversion.map { conversion in
            Conversion(
                value: conversion.value.description, rate: conversion.rate.description, sources: conversion.sources,
                measuredBoottime: conversion.measuredBoottime)
        }
        observedBoottime = file.price?.observedBoottime
        rests = file.rests.compactMapValues(Rest.init)
        sequence = file.sequence
        venues = (file.price?.marks ?? [:]).mapValues { Mark(time: $0.time?.milliseconds, trade: $0.trade) }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // Only where there is one.
        conversion = try container.decodeIfPresent(Conversion.self, forKey: .conversion)
        observedBoottime = try container.decodeIfPresent(Int64.self, forKey: .observedBoottime)
        quote = try container.decodeIfPresent(Quote.self, forKey: .quote)
        // Not in the files of the first release.
        rests = try container.decodeIfPresent([String: Rest].self, forKey: .rests) ?? [:]
        sequence = try container.decode(Int64.self, forKey: .sequence)
        venues = try container.decode([String: Mark].self, forKey: .venues)
    }

    /// Whoever goes on with these numbers reckons with them: none may be so large that this overflows.
    func checkNumbers() throws(QuoteFile.Damage) {
        let times =
            [quote?.timestamp, observedBoottime, conversion?.measuredBoottime].compactMap(\.self)
            + venues.values.compactMap(\.time)
            + rests.values.flatMap { [$0.since, $0.sinceBoottime, $0.until, $0.untilBoottime] }
        guard times.allSatisfy(Timestamp.possibleMilliseconds.contains) else {
            throw QuoteFile.Damage("a time that can't be")
        }
        let counts = [sequence] + rests.values.map { Int64($0.strikes) }
        guard counts.allSatisfy((0...QuoteFile.highestCount).contains) else {
            throw QuoteFile.Damage("a count that can't be")
        }
    }

    func price() throws(QuoteFile.Damage) -> CachedPrice? {
        guard let quote else { return nil }
        guard let value = Decimal(exactly: quote.value) else { throw QuoteFile.Damage("the price is not a number") }
        guard value >= QuoteCheck.lowest, value <= QuoteCheck.highest else {
            throw QuoteFile.Damage("the price is none that is taken")
        }
        return CachedPrice(
            quote: PriceQuote(
                value: value, currency: quote.currency, timestamp: Timestamp(milliseconds: quote.timestamp),
                source: quote.source, market: quote.market),
            observedBoottime: observedBoottime, conversion: try conversion?.read(),
            marks: venues.mapValues { mark in
                VenueMark(time: mark.time.map { Timestamp(milliseconds: $0) }, trade: mark.trade)
            })
    }
}

extension Document.Conversion {
    fileprivate func read() throws(QuoteFile.Damage) -> BTCPriceCore.Conversion {
        guard let value = Decimal(exactly: value), let rate = Decimal(exactly: rate), value > 0, rate > 0,
            value <= QuoteCheck.highest
        else { throw QuoteFile.Damage("the conversion is none") }
        return BTCPriceCore.Conversion(value: value, rate: rate, sources: sources, measuredBoottime: measuredBoottime)
    }
}

extension Document.Rest {
    /// `nil` for a rest that a restart may cut short.
    fileprivate init?(_ kept: KeptRest) {
        switch kept.rest.reason {
        case .rateLimited(let text, _): (kind, reason) = ("rateLimited", text)
        case .refused(let text): (kind, reason) = ("refused", text)
        default: return nil
        }
        address = kept.address
        since = kept.rest.since.wall.milliseconds
        sinceBoottime = kept.rest.since.boottime
        strikes = kept.rest.strikes
        until = kept.rest.until.wall.milliseconds
        untilBoottime = kept.rest.until.boottime
    }

    fileprivate var kept: KeptRest {
        KeptRest(
            address: address,
            rest: SourceRest(
                reason: kind == "refused" ? .refused(reason) : .rateLimited(reason, retryAfter: nil),
                since: ObservationTime(wall: Timestamp(milliseconds: since), boottime: sinceBoottime),
                until: ObservationTime(wall: Timestamp(milliseconds: until), boottime: untilBoottime),
                strikes: strikes),
            isOfThisBoot: true)
    }
}
