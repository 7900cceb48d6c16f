import Testing

@testable import btc_price_fleet

@Suite struct BrokerTests {
    @Test(arguments: [
        ("mqtts://broker.example", "broker.example", 8883, true), ("mqtt://127.0.0.1", "127.0.0.1", 1883, false),
        ("mqtts://broker.example:1234/", "broker.example", 1234, true),
        ("mqtts://[2001:db8::1]:1", "2001:db8::1", 1, true),
    ])
    func `an address of a broker is read`(text: String, host: String, port: UInt16, isEncrypted: Bool) {
        let address = BrokerAddress(text)
        #expect(address?.host == host)
        #expect(address?.port == port)
        #expect(address?.isEncrypted == isEncrypted)
    }

    @Test(arguments: [
        "", "broker.example", "http://broker.example", "mqtts://", "mqtts://a:0", "mqtts://a:65536", "mqtts://u@a",
        "mqtts://a/b", "mqtts://a?b", "mqtts://a b",
    ])
    func `an invalid address of a broker is refused`(text: String) {
        #expect(BrokerAddress(text) == nil)
    }
}
