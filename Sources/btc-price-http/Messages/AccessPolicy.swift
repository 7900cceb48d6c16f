import Glibc
import NIOHTTP1

/// Decides which requests are served. A web page of another site must not read this machine's gateway through the user's browser.
struct AccessPolicy: Sendable {
    /// How a request arrived.
    struct Arrival: Sendable {
        /// The local address; `nil` on a Unix socket.
        var localAddress: String?
        /// The client's address; `nil` on a Unix socket.
        var remoteAddress: String?
        /// Whether the client is a program on this machine, which may be a reverse proxy.
        var isLocal = true
    }

    /// The host names to serve besides `localhost` and addresses, in lower case; ``AllowList/anyHost`` for all.
    let hosts: Set<String>
    /// The origins whose pages may read the responses (RFC 6454): `https://shop.example`, `null`, in lower case.
    let origins: Set<String>

    /// - Throws: Why the request is refused.
    func check(_ request: GatewayRequest) throws(Problem) {
        // Another site may point its own name to this machine (DNS rebinding). Browsers always send the name; HTTP/1.0 need not.
        if let local = request.arrival.localAddress, let host = request.authority.map(Self.name), !isOwn(host, local) {
            throw Problem(.misdirectedRequest, "The gateway does not serve this host name; see --hosts.")
        }
        if let origin = request.header("origin")?.lowercased() {
            let own = request.authority.map { ["http://\($0.lowercased())", "https://\($0.lowercased())"] } ?? []
            guard own.contains(origin) || origins.contains(origin) else {
                throw Problem(.forbidden, "Pages of this origin may not read the price; see --origins.")
            }
        } else if request.header("sec-fetch-site") == "cross-site" {
            // W3C, Fetch Metadata Request Headers.
            throw Problem(.forbidden, "Pages of another site may not read the price; see --origins.")
        }
    }

    /// Returns the response to the request by which a browser asks whether a page of another site may send a header, such as
    /// `If-None-Match` (WHATWG, Fetch Standard, CORS-preflight request); `nil` for another request. ``check(_:)`` comes first.
    func preflight(_ request: GatewayRequest) -> GatewayResponse? {
        guard request.isPreflight else { return nil }
        var response = GatewayResponse(status: .noContent)
        guard allowedOrigin(request.header("origin")) != nil else { return response }
        response.headers.add(name: "access-control-allow-methods", value: "GET, HEAD")
        response.headers.add(name: "access-control-allow-headers", value: "If-None-Match, Last-Event-ID, Cache-Control")
        // A day; browsers keep it for at most two hours to a day.
        response.headers.add(name: "access-control-max-age", value: "86400")
        return response
    }

    /// The headers that a page of another site can't read without leave.
    private static let exposed = "Price-Age, ETag, Age, Date, Retry-After, Link"

    /// Adds the headers that tell a browser which pages may read the response.
    func mark(_ response: inout GatewayResponse, to request: GatewayRequest) {
        guard !origins.isEmpty else {
            return response.headers.add(name: "cross-origin-resource-policy", value: "same-origin")
        }
        let vary = response.headers.first(name: "vary").map { "\($0), Origin" }
        response.headers.replaceOrAdd(name: "vary", value: vary ?? "Origin")
        let allowed = allowedOrigin(request.header("origin"))
        if let allowed {
            response.headers.add(name: "access-control-allow-origin", value: allowed)
            response.headers.add(name: "access-control-expose-headers", value: Self.exposed)
        }
        response.headers.add(
            name: "cross-origin-resource-policy", value: allowed == nil ? "same-origin" : "cross-origin")
    }

    /// The value of Access-Control-Allow-Origin; `nil` for none.
    func allowedOrigin(_ origin: String?) -> String? {
        origin.flatMap { origins.contains($0.lowercased()) ? $0 : nil }
    }

    private func isOwn(_ host: String, _ local: String) -> Bool {
        host == "localhost" || host == local || Self.isAddress(host) || hosts.contains(host)
            || hosts.contains(AllowList.anyHost)
    }

    /// Whether it is an IP address. Another site can't make an address its own name.
    private static func isAddress(_ host: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
    }

    /// The name or address in an authority, without the port, the brackets and the dot at the end, in lower case.
    static func name(ofAuthority authority: String) -> String {
        var name = authority.lowercased()[...]
        if name.hasPrefix("["), let end = name.firstIndex(of: "]") {
            return String(name[name.index(after: name.startIndex)..<end])
        }
        if let colon = name.lastIndex(of: ":") { name = name[..<colon] }
        if name.hasSuffix(".") { name = name.dropLast() }
        return String(name)
    }
}
