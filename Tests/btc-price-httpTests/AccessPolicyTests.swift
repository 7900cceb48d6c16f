import CommandLine
import NIOHTTP1
import Testing

@testable import btc_price_http

@Suite struct AccessPolicyTests {
    private let policy = AccessPolicy(hosts: ["host.docker.internal"], origins: ["https://shop.example"])
    private let tcp = AccessPolicy.Arrival(localAddress: "127.0.0.1")

    private func refusal(
        host: String? = "localhost", origin: String? = nil, site: String? = nil,
        at arrival: AccessPolicy.Arrival? = nil, by policy: AccessPolicy? = nil
    ) -> Int? {
        let fields = [("Host", host), ("Origin", origin), ("Sec-Fetch-Site", site)]
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: "/",
            headers: HTTPHeaders(fields.compactMap { name, value in value.map { (name, $0) } }))
        guard let request = GatewayRequest(head, arrival ?? tcp) else { return nil }
        do throws(Problem) {
            try (policy ?? self.policy).check(request)
            return nil
        } catch {
            return Int(error.status.code)
        }
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:8340", "localhost.", "127.0.0.1", "127.0.0.1:8340", "host.docker.internal:80",
        // Another site can't make an address its own name.
        "192.168.1.205:8340", "10.96.0.10", "127.0.0.2", "[fd00::5]:8340", "[::1]",
    ])
    func `the gateway's own names and all addresses are served`(host: String) {
        #expect(refusal(host: host) == nil)
    }

    @Test(arguments: [
        "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "1.2.3", "0x7f.1", "2130706433",
    ])
    func `any other name is misdirected`(host: String) {
        #expect(refusal(host: host) == 421)
    }

    @Test func `a missing host, which no browser sends, and the host on a Unix socket do not matter`() {
        #expect(refusal(host: nil) == nil)
        #expect(refusal(host: nil, origin: "https://evil.example") == 403)
        #expect(refusal(host: nil, site: "cross-site") == 403)
        #expect(refusal(host: "evil.example", at: .init(localAddress: nil)) == nil)
        #expect(refusal(host: "[::1]:8340", at: .init(localAddress: "::1")) == nil)
    }

    @Test func `any host is served if the list has an asterisk`() {
        #expect(refusal(host: "evil.example", by: AccessPolicy(hosts: [AllowList.anyHost], origins: [])) == nil)
    }

    @Test func `a listed page may send If-None-Match and read the headers of ours, another one may not`() throws {
        func request(_ method: HTTPMethod, _ origin: String) throws -> GatewayRequest {
            let fields = [("Host", "localhost"), ("Origin", origin), ("Access-Control-Request-Method", "GET")]
            return try #require(
                GatewayRequest(
                    HTTPRequestHead(version: .http1_1, method: method, uri: "/", headers: HTTPHeaders(fields)), tcp))
        }
        let listed = try request(.OPTIONS, "https://shop.example")
        var response = try #require(policy.preflight(listed))
        policy.mark(&response, to: listed)
        #expect(response.status == .noContent)
        #expect(response.headers["access-control-allow-origin"] == ["https://shop.example"])
        #expect(response.headers.first(name: "access-control-allow-headers")?.contains("If-None-Match") == true)
        #expect(response.headers.first(name: "access-control-expose-headers")?.contains("Price-Age") == true)
        let other = try request(.OPTIONS, "https://evil.example")
        response = try #require(policy.preflight(other))
        policy.mark(&response, to: other)
        #expect(response.headers.filter { $0.name.hasPrefix("access-control") }.isEmpty)
        #expect(policy.preflight(try request(.GET, "https://shop.example")) == nil)
        let plain = HTTPRequestHead(
            version: .http1_1, method: .OPTIONS, uri: "/", headers: ["Origin": "https://shop.example"])
        #expect(!GatewayRequest.isPreflight(plain))
    }

    @Test func `pages of other sites are refused`() {
        #expect(refusal(origin: "https://evil.example") == 403)
        #expect(refusal(origin: "null") == 403)
        #expect(refusal(site: "cross-site") == 403)
        #expect(refusal(origin: "https://evil.example", site: "same-origin") == 403)
    }

    @Test func `pages of the gateway and of a listed origin are allowed`() {
        #expect(refusal(origin: "http://localhost") == nil)
        #expect(refusal(site: "same-origin") == nil)
        #expect(refusal(site: "none") == nil)
        #expect(refusal(origin: "https://shop.example", site: "cross-site") == nil)
        #expect(policy.allowedOrigin("https://shop.example") == "https://shop.example")
        #expect(policy.allowedOrigin("https://evil.example") == nil)
    }
}

@Suite struct AllowListTests {
    @Test(arguments: [
        ("price.internal", "price.internal"), ("Price.Internal:8340", "price.internal"),
        ("price.internal.", "price.internal"),
        ("my_host", "my_host"), (" 192.168.1.7", "192.168.1.7"), ("192.168.1.7:8340", "192.168.1.7"), ("::1", "::1"),
        ("[::1]:8340", "::1"), ("2001:DB8:0:0::1", "2001:db8::1"), ("*", "*"),
    ])
    func `a host is a name or an address, as clients write it, without its port`(text: String, host: String) {
        #expect((try? AllowList.host(text)) == host)
    }

    @Test(arguments: [
        ("*.internal", "'*' for any host"), ("192.168.1.0/24", "'*' for any host"),
        ("http://price.internal:80/x", "write price.internal"), ("price.internal/", "'*' for any host"),
        ("münchen.example", "in ASCII"), ("", "price.internal"), ("a:b", "price.internal"), ("[x]", "price.internal"),
        ("http://", "'*' for any host"), ("..", "price.internal"),
    ])
    func `a host that no request can match is refused with what to write`(text: String, instead: String) throws {
        let mistake = #expect(throws: UsageError.self) { try AllowList.host(text) }
        #expect(try #require(mistake).description.contains(instead))
    }

    @Test(arguments: [
        "https://shop.example", "http://localhost:3000", "http://[::1]:8080", "null", "capacitor://localhost",
        "tauri://localhost", "chrome-extension://aapbdbdomjkkjkaonfhkkikfgjllcleb",
        "moz-extension://5a8dc33c-e7b0-4a4e-8a41-2f2b6e6a0c11", "Https://Shop.example", " https://a.example",
    ])
    func `the origins of pages, extensions and apps are allowed`(text: String) {
        #expect((try? AllowList.origin(text)) == text.lowercased().filter { $0 != " " })
    }

    @Test(arguments: [
        ("https://*.shop.example", "patterns"), ("*", "patterns"), ("https://shop.example/", "without a path"),
        ("shop.example", "without a path"), ("https://shop.example:443", "write https://shop.example"),
        ("http://shop.example:80", "write http://shop.example"), ("file://", "null"), ("", "without a path"),
        ("https://user@shop.example", "without a path"),
    ])
    func `an origin that no browser sends is refused with what to write`(text: String, instead: String) throws {
        let mistake = #expect(throws: UsageError.self) { try AllowList.origin(text) }
        #expect(try #require(mistake).description.contains(instead))
    }
}

@Suite struct ListenAddressTests {
    @Test func `an address with a port and a path are read`() {
        #expect(ListenAddress("127.0.0.1:8340")?.kind == .tcp("127.0.0.1", 8340))
        #expect(ListenAddress("[::1]:80")?.kind == .tcp("::1", 80))
        #expect(ListenAddress("unix:/run/x.sock")?.kind == .unix("/run/x.sock"))
    }

    @Test(arguments: [
        "", "8340", ":8340", "localhost:8340", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "unix:x", "unix:",
        "1.2.3:80", "/run/x.sock",
    ])
    func `any other text is not an address`(text: String) {
        #expect(ListenAddress(text) == nil)
    }

    @Test func `a path that no socket can have is refused`() {
        #expect(ListenAddress("unix:/" + String(repeating: "x", count: 107)) == nil)
    }
}

@Suite struct HTTPDateTests {
    @Test func `dates have the form of the specifications`() {
        // RFC 9110, section 5.6.7.
        #expect(HTTPDate.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.rfc3339(1_724_596_200_007) == "2024-08-25T14:30:00.007Z")
        #expect(HTTPDate.rfc3339(0) == "1970-01-01T00:00:00.000Z")
    }
}
