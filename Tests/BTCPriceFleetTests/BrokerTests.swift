import Testing

@testable import BTCPriceFleet

@Suite struct BrokerTests {
    @Test(arguments: [
        ("mqtts://broker.example", "broker.example", 8883, true), ("mqtt://127.0.0.1", "127.0.0.1", 1883, false),
        ("mqtts://broker.example:1234/", "broker.example", 1234, true),
        ("mqtts://[2001:db8::1]:1", "2001:db8::1", 1, true),
    ])
    func `addresses of brokers`(text: String, host: String, port: UInt16, isEncrypted: Bool) {
        let address = BrokerAddress(text)
        #expect(address?.host == host)
        #expect(address?.port == port)
        #expect(address?.isEncrypted == isEncrypted)
    }

    @Test(arguments: [
        "", "broker.example", "http://broker.example", "mqtts://", "mqtts://a:0", "mqtts://a:65536", "mqtts://u@a",
        "mqtts://a/b", "mqtts://a?b", "mqtts://a b",
    ])
    func `what is no address of a broker is refused`(text: String) {
        #expect(BrokerAddress(text) == nil)
    }

    @Test func `waits are doubled up to two minutes, spread, and begin anew after a good connection`() {
        var backoff = Backoff()
        let longest = (0..<9).map { _ in backoff.wait(after: nil, chance: 1) }
        #expect(longest == [1.5, 3, 6, 12, 24, 48, 96, 120, 120].map { .seconds($0) })
        #expect(backoff.wait(after: .seconds(3), chance: 0) == .seconds(80))
        #expect(backoff.wait(after: .seconds(10), chance: 0) == .seconds(1))
        #expect(backoff.wait(after: nil, chance: 0.5) == .milliseconds(2500))
    }
}
