import NIOHTTP1
import Testing

@testable import btc_price_http

@Suite struct GatewayRequestTests {
    private func request(
        _ target: String, host: String? = "localhost", forwarded: String? = nil,
        at arrival: AccessPolicy.Arrival = .init()
    ) -> GatewayRequest? {
        var headers = HTTPHeaders(host.map { [("Host", $0)] } ?? [])
        if let forwarded { headers.add(name: "X-Forwarded-For", value: forwarded) }
        return GatewayRequest(HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers), arrival)
    }

    @Test(arguments: [
        ("/", []), ("/v1/price", ["v1", "price"]), ("/v1/price/", ["v1", "price"]),
        ("/v1//price?x=/y", ["v1", "price"]), ("/v1/price%2f", ["v1", "price%2f"]),
        ("/v1/price#x?currency=EUR", ["v1", "price"]), ("http://other.example:80/v1/day?x", ["v1", "day"]),
        ("//x/metrics", ["x", "metrics"]),
    ])
    func `the path is used as it is, except for empty segments`(target: String, path: [String]) {
        #expect(request(target)?.path == path)
    }

    @Test func `parameters are decoded, the first one of a name counts, and a plus sign stays one`() {
        let found = request("/v1/at?time=2026-08-25T14:30%3A00+02:00&currency=EUR&currency=USD&x&y=&z=a=b")
        #expect(found?["time"] == "2026-08-25T14:30:00+02:00")
        #expect(found?["currency"] == "EUR")
        #expect(["x", "y", "z", "w"].map { found?[$0] } == ["", "", "a=b", nil])
        #expect(request("/?&x=1&&")?.parameters.map(\.name) == ["x"])
        #expect(request("/?na%6de=%C3%A9%20")?["name"] == "é ")
        for bad in ["/?x=%", "/?x=%4", "/?x=%zz", "/?x=%+1", "/?x=%FF", "/?%E2%82=x"] { #expect(request(bad) == nil) }
    }

    @Test func `the authority of an absolute target overrides the Host header`() {
        #expect(request("/")?.authority == "localhost")
        #expect(request("http://evil.example:1/")?.authority == "evil.example:1")
        #expect(request("http://evil.example?x")?.authority == "evil.example")
        #expect(request("http://[::1]:8340/")?.authority == "[::1]:8340")
        for bad in ["http://", "http:/x", "x", "*", "1http://a/", "http://user@a/", "http://[x]/"] {
            #expect(request(bad) == nil)
        }
        #expect(request("/?x=http://evil.example/")?.authority == "localhost")
        #expect(request("//evil.example/v1/price")?.authority == "localhost")
        #expect(request("/", host: nil)?.authority == nil)
    }

    @Test func `a client is its address, or what a reverse proxy on this machine writes`() {
        let local = AccessPolicy.Arrival(localAddress: "127.0.0.1", remoteAddress: "127.0.0.1", isLocal: true)
        let distant = AccessPolicy.Arrival(localAddress: "192.0.2.1", remoteAddress: "192.0.2.7", isLocal: false)
        #expect(request("/")?.client == "")
        #expect(request("/", forwarded: "198.51.100.1, 198.51.100.2")?.client == "198.51.100.2")
        #expect(request("/", at: local)?.client == "127.0.0.1")
        #expect(request("/", forwarded: "198.51.100.1", at: local)?.client == "198.51.100.1")
        #expect(request("/", forwarded: "198.51.100.1", at: distant)?.client == "192.0.2.7")
    }

    private static let prometheus = """
        application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2
        """

    @Test(arguments: [
        (prometheus, "application/openmetrics-text"), ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", "text/plain"),
        ("application/openmetrics-text;q=0,text/plain", "text/plain"),
        ("application/openmetrics-text;q=0, */*", "text/plain"),
        ("text/plain;q=1,application/openmetrics-text;version=1.0.0;q=0.1", "text/plain"),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4", "application/openmetrics-text"),
        ("Application/OpenMetrics-Text ; Q=0.9, text/*;q=0.8", "application/openmetrics-text"),
        ("text/plain;q=0,*/*", "application/openmetrics-text"), ("*/*", "text/plain"), ("", "text/plain"),
        ("application/json", "text/plain"), ("*/*;q=0", "text/plain"), (";,;q=x,text/plain;q=nan", "text/plain"),
    ])
    func `the media type with the highest weight is preferred`(accept: String, type: String) {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/metrics", headers: ["Accept": accept])
        let request = GatewayRequest(head, .init())
        #expect(request?.preferred(["text/plain", "application/openmetrics-text"]) == type)
    }

    @Test(arguments: ["*", "v1/price", "http:", "http://", "http://localhost:x/", "mailto:x"])
    func `a target that is neither a path nor an absolute URL is refused`(target: String) {
        #expect(request(target) == nil)
    }
}
