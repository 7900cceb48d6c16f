import BTCPriceCore
import BTCPriceSocket
import NIOCore
import NIOHTTP1

/// A body with the headers for it that caches and clients need.
struct Representation: Sendable {
    private let body: ByteBuffer
    private let etag: String
    /// The headers that are the same in every response.
    private let fields: HTTPHeaders
    /// The state of the oldest price in it.
    private let oldest: PriceState?

    /// - Parameter cacheControl: The value of Cache-Control: how long a client may use the body without another request.
    init(_ text: String, contentType: String, cacheControl: String = "max-age=1", oldest: PriceState? = nil) {
        body = ByteBuffer(string: text)
        // 64 bits of FNV-1a, so that two bodies are unlikely to have the same one.
        let hash = text.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        etag = "\"\(String(hash, radix: 16))\""
        var fields = HTTPHeaders([("content-type", contentType), ("cache-control", cacheControl), ("etag", etag)])
        if let quote = oldest?.quote {
            fields.add(name: "last-modified", value: HTTPDate.text(Int(quote.timestamp.wholeSeconds)))
        }
        self.fields = fields
        self.oldest = oldest
    }

    init(_ json: JSON, cacheControl: String = "max-age=1", oldest: PriceState? = nil) {
        self.init(json.text + "\n", contentType: "application/json", cacheControl: cacheControl, oldest: oldest)
    }

    /// The response, or 304 if the client already has the body (RFC 9110, section 13.1.2).
    /// - Parameter vary: The request header that the response depends on.
    func response(to request: GatewayRequest, vary: String? = nil) -> GatewayResponse {
        var fields = self.fields
        if let vary { fields.add(name: "vary", value: vary) }
        if let oldest {
            // The response is new, whatever the age of the price in it.
            fields.add(name: "age", value: "0")
            if let age = oldest.age(at: .now())?.age {
                fields.add(name: "price-age", value: "\(age.components.seconds)")
            }
        }
        if let known = request.header("if-none-match"), known.split(separator: ",").contains(where: matches) {
            fields.remove(name: "content-type")
            return GatewayResponse(status: .notModified, headers: fields)
        }
        return GatewayResponse(headers: fields, body: body)
    }

    private func matches(_ text: Substring) -> Bool {
        var tag = text.drop { $0 == " " }
        while tag.last == " " { tag = tag.dropLast() }
        return tag == "*" || (tag.hasPrefix("W/") ? tag.dropFirst(2) : tag) == etag
    }
}
