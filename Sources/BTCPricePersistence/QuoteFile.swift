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

    static let blankChecksum = "00000000"
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
    func encoded() throws(Damage) -> [UInt8] {
        var bytes = json.bytes
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
        blanked.replaceSubrange(place, with: Self.blankChecksum.utf8)
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
        rests = (document.rests ?? [:]).mapValues(\.kept)
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
        let end = opening.count + Self.blankChecksum.utf8.count
        guard bytes.count > end, bytes.starts(with: opening), bytes[end] == UInt8(ascii: "\"") else { return nil }
        return opening.count..<end
    }
}

private struct Schema: Decodable {
    var schemaVersion: Int
}

/// The file as JSON is read.
private struct Document: Decodable {
    struct Quote: Decodable {
        var value: String
        var currency: String
        var timestamp: Int64
        var source: String
        var market: String
    }

    /// Of a quote that was read in USDT: the value as it was read, and what it was multiplied by.
    struct Conversion: Decodable {
        var value: String
        var rate: String
        var sources: [String]
        var measuredBoottime: Int64
    }

    struct Mark: Decodable {
        var time: Int64?
        var trade: Int64?
    }

    /// Times are milliseconds: since 1970, and of `CLOCK_BOOTTIME` where the name says so.
    struct Rest: Decodable {
        var address: String
        var kind: String
        var reason: String
        var since: Int64
        var sinceBoottime: Int64
        var strikes: Int
        var until: Int64
        var untilBoottime: Int64
    }

    var conversion: Conversion?
    var observedBoottime: Int64?
    var quote: Quote?
    /// Not in the files of the first release.
    var rests: [String: Rest]?
    var sequence: Int64
    var venues: [String: Mark]

    /// Whoever goes on with these numbers reckons with them: none may be so large that this overflows.
    func checkNumbers() throws(QuoteFile.Damage) {
        let keptRests = rests.map { Array($0.values) } ?? []
        let times =
            [quote?.timestamp, observedBoottime, conversion?.measuredBoottime].compactMap(\.self)
            + venues.values.compactMap(\.time)
            + keptRests.flatMap { [$0.since, $0.sinceBoottime, $0.until, $0.untilBoottime] }
        guard times.allSatisfy(Timestamp.possibleMilliseconds.contains) else {
            throw QuoteFile.Damage("a time that can't be")
        }
        let counts = [sequence] + keptRests.map { Int64($0.strikes) }
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
