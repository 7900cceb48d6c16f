import BTCPriceCore
import BTCPriceSocket
import NIOCore
import NIOHTTP1

/// A request of a client. It has no body.
struct GatewayRequest: Sendable {
    /// The segments of the path, not decoded, because no route needs an escape. Empty segments are omitted.
    let path: [String]
    /// The parameters of the query in their order, decoded. A plus sign is not decoded to a space, because time zones contain it.
    let parameters: [(name: String, value: String)]
    /// The authority: from an absolute target, otherwise from the Host header (RFC 9112, section 3.2.2).
    let authority: String?
    let arrival: AccessPolicy.Arrival
    /// Whether a browser asks what a page of another site may do; see ``AccessPolicy/preflight(_:)``.
    let isPreflight: Bool
    private let headers: HTTPHeaders

    /// - Returns: `nil` if the target is neither a path nor an absolute URL (RFC 9112, section 3.2), or if its query can't be decoded.
    init?(_ head: HTTPRequestHead, _ arrival: AccessPolicy.Arrival) {
        headers = head.headers
        self.arrival = arrival
        isPreflight = Self.isPreflight(head)
        var rest = head.uri[...]
        if rest.hasPrefix("/") {
            // A target that begins with two slashes is a path, too, and names no host.
            authority = head.headers.first(name: "host")
        } else {
            guard let address = WebAddress(head.uri), let start = rest.start(of: "://") else { return nil }
            let host = address.host.bracketedHost
            authority = address.port.map { "\(host):\($0)" } ?? host
            rest = rest[start...].dropFirst(3).drop { !"/?#".contains($0) }
        }
        rest = rest.prefix { $0 != "#" }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = parts[0].split(separator: "/").map(String.init)
        var parameters: [(String, String)] = []
        for item in parts.dropFirst().joined().split(separator: "&") {
            let sides = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = sides[0].percentDecoded, let value = (sides.count > 1 ? sides[1] : "").percentDecoded
            else {
                return nil
            }
            if !name.isEmpty { parameters.append((name, value)) }
        }
        self.parameters = parameters
    }

    /// Whether a request is a CORS-preflight request. Other requests with OPTIONS are not supported.
    static func isPreflight(_ head: HTTPRequestHead) -> Bool {
        head.method == .OPTIONS && head.headers.contains(name: "origin")
            && head.headers.contains(name: "access-control-request-method")
    }

    /// Identifies the client where clients share something: its address, or that which a reverse proxy on this machine writes. Not for
    /// access, because any program on this machine can write it.
    var client: String {
        let forwarded = arrival.isLocal ? headers["x-forwarded-for"].last?.split(separator: ",").last : nil
        return forwarded.map { String($0.filter { $0 != " " }) } ?? arrival.remoteAddress ?? ""
    }

    /// The value of a parameter; the first one if it occurs more than once.
    subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// The value of a header; the first one if it occurs more than once.
    func header(_ name: String) -> String? { headers.first(name: name) }

    /// The media type of the highest weight (RFC 9110, section 12.5.1); of several, one named without an asterisk, or the first.
    /// - Parameter offered: The possible types. The first one is returned if the client accepts none.
    func preferred(_ offered: [String]) -> String {
        let ranges = headers["accept"].joined(separator: ",").lowercased().split(separator: ",").map { range in
            let parts = range.split(separator: ";").map { String($0.filter { $0 != " " && $0 != "\t" }) }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            return (type: parts.first ?? "", weight: weight)
        }
        func rank(_ type: String) -> (weight: Double, exactness: Int, order: Int)? {
            let names = ["*/*", "\(type.prefix { $0 != "/" })/*", type]
            let matches = ranges.enumerated().compactMap { index, range in
                names.firstIndex(of: range.type).map { (weight: range.weight, exactness: $0, order: -index) }
            }
            // The most exact range counts, also if its weight is 0.
            let match = matches.max { ($0.exactness, $0.weight, $0.order) < ($1.exactness, $1.weight, $1.order) }
            return match.flatMap { $0.weight > 0 ? $0 : nil }
        }
        let accepted = offered.compactMap { type in rank(type).map { (type: type, rank: $0) } }
        // The first one of those with the highest rank.
        return accepted.max { $0.rank < $1.rank }?.type ?? offered[0]
    }
}

struct GatewayResponse: Sendable {
    var status = HTTPResponseStatus.ok
    var headers = HTTPHeaders()
    var body = ByteBuffer()
    /// The subscription of an event stream. If it is set, the response has no end.
    var stream: EventSubscription?
}

/// What a client of the event stream subscribes to.
struct EventSubscription: Sendable, Hashable {
    /// ISO 4217; `nil` for all currencies.
    var currencies: Set<String>?
    /// Whether changes between the ticks are sent, too.
    var updates = WatchUpdates.ticks
    /// The id of the last event that the client has received.
    var lastEventID: String?
}
