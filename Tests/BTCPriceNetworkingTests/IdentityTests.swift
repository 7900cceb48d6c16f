import Testing

@testable import BTCPriceNetworking

/// The hosts that a certificate is valid for (RFC 9525).
@Suite struct IdentityTests {
    private func identity(_ url: String) throws -> ServerIdentity {
        ServerIdentity(try #require(HTTPRequest(url)).origin)
    }

    @Test(arguments: [
        ("api.exchange.test", "api.exchange.test", true),
        ("API.Exchange.test", "api.eXchange.TEST", true),
        ("api.exchange.test.", "api.exchange.test", true),
        ("api.exchange.test", "api.exchange.test.", true),
        ("api.exchange.test", "*.exchange.test", true),
        ("api.exchange.test", "*.EXCHANGE.test", true),
        ("exchange.test", "*.exchange.test", false),
        ("v3.api.exchange.test", "*.exchange.test", false),
        ("exchange.test", "*.test", false),
        ("api.exchange.test", "a*.exchange.test", false),
        ("api.exchange.test", "api.*.test", false),
        ("api.exchange.test", "*", false),
        ("api.exchange.test", "*.", false),
        ("api.exchange.test", "", false),
        ("api.exchange.test", "exchange.test", false),
        ("api.exchange.test", "api.exchange.test\u{0}.evil.test", false),
        ("localhost", "localhost", true),
        ("localhost", "*.localhost", false),
    ])
    func `a name matches itself, an asterisk matches one label`(host: String, presented: String, expected: Bool) throws
    {
        #expect(try identity("https://\(host)/").matches(presented.utf8) == expected)
    }

    @Test func `an address is not a name, and a name is not an address`() throws {
        let four = try identity("https://192.0.2.7:8443/")
        #expect(!four.isName)
        #expect(four.isAddress([192, 0, 2, 7]))
        #expect(!four.isAddress([192, 0, 2, 8]))
        #expect(!four.isAddress([192, 0, 2]))
        #expect(!four.isAddress([]))
        #expect(!four.matches("192.0.2.7".utf8))
        let six = try identity("https://[2001:db8::7]/")
        #expect(six.isAddress([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]))
        #expect(!six.isAddress([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8]))
        #expect(!six.isAddress([192, 0, 2, 7]))
        #expect(try !identity("https://exchange.test/").isAddress([192, 0, 2, 7]))
    }
}
