import NIOHTTP1
import Testing

@testable import BTCPriceHTTP

@Suite struct GatewayRequestTests {
    private func request(_ target: String, host: String? = "localhost") -> GatewayRequest? {
        let headers = HTTPHeaders(host.map { [("Host", $0)] } ?? [])
        return GatewayRequest(HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers), .init())
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
    }

    @Test func `the authority of an absolute target overrides the Host header`() {
        #expect(request("/")?.authority == "localhost")
        #expect(request("http://evil.example:1/")?.authority == "evil.example:1")
        #expect(request("http://evil.example?x")?.authority == "evil.example")
        #expect(request("/?x=http://evil.example/")?.authority == "localhost")
        #expect(request("//evil.example/v1/price")?.authority == "localhost")
        #expect(request("/", host: nil)?.authority == nil)
    }

    @Test(arguments: ["*", "v1/price", "http:", "http://", "http://localhost:x/", "mailto:x"])
    func `a target that is neither a path nor an absolute URL is refused`(target: String) {
        #expect(request(target) == nil)
    }
}
