import BTCPriceCore
import BTCPriceSocket

/// The content of `last-quote.json`: readable JSON with a schema version, a save sequence and a checksum over the whole file.
struct QuoteFile: Equatable {
    /// Why a file's content is not valid.
    struct Damage: Error, Equatable {
        let reason: String
        /// A newer version wrote the file.
        let isNewer: Bool

        init(_ reason: String, isNewer: Bool = false) {
            self.reason = reason
            self.isNewer = isNewer
        }
    }

    static let blankChecksum = "00000000"
    /// The schema version that is written, and the only one that is read.
    static let schemaVersion: Int64 = 1
    /// The highest accepted count: more than a daemon reaches in its life.
    static let highestCount: Int64 = 1 << 48

    /// The number of saves, continued over restarts. Of two copies the higher one is newer, regardless of the wall clock.
    var sequence: Int64
    /// The last price of each currency that had one.
    var prices: [CachedPrice] = []
    /// The cooldowns that a restart must not shorten, by the source's name.
    var cooldowns: [String: KeptCooldown] = [:]
    /// What was in the file and is not valid, each with the reason.
    var unusable: [String] = []
}

extension QuoteFile {
    func encoded() throws(Damage) -> [UInt8] {
        var writer = JSONWriter(.lines, capacity: 1024)
        write(to: &writer)
        var bytes = writer.bytes
        bytes.append(UInt8(ascii: "\n"))
        guard let range = Self.checksumRange(in: bytes) else { throw Damage("no room for the checksum") }
        bytes.replaceSubrange(range, with: CRC32.checksum(bytes).padded(8, radix: 16).utf8)
        return bytes
    }

    /// A price or a cooldown that is not valid is left out: a currency's prices may have been others in another version.
    /// - Throws: ``Damage`` if the bytes differ in any way from what ``encoded()`` wrote.
    init(decoding bytes: [UInt8]) throws(Damage) {
        guard let range = Self.checksumRange(in: bytes) else { throw Damage("no checksum") }
        var blanked = bytes
        blanked.replaceSubrange(range, with: Self.blankChecksum.utf8)
        guard bytes[range].elementsEqual(CRC32.checksum(blanked).padded(8, radix: 16).utf8) else {
            throw Damage("the checksum does not match")
        }
        do {
            let json = try JSONValue(parsing: bytes[...])
            let schema = try json.required("schemaVersion", .integer)
            guard schema == Self.schemaVersion else {
                throw Damage("schema version \(schema) is not supported", isNewer: schema > Self.schemaVersion)
            }
            try self.init(json: json)
        } catch let damage as Damage {
            throw damage
        } catch {
            throw Damage("not the expected JSON")
        }
    }

    /// The range of the eight checksum digits. The checksum is the first member.
    private static func checksumRange(in bytes: [UInt8]) -> Range<Int>? {
        let opening = Array("{\n  \"checksum\" : \"".utf8)
        let end = opening.count + Self.blankChecksum.utf8.count
        guard bytes.count > end, bytes.starts(with: opening), bytes[end] == UInt8(ascii: "\"") else { return nil }
        return opening.count..<end
    }
}

/// CRC-32 (ISO 3309, as in RFC 1952 section 8). It detects a torn or damaged file, not tampering.
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(0xFFFF_FFFF) { value, byte in table[Int((value ^ UInt32(byte)) & 0xFF)] ^ (value >> 8) }
    }
}
