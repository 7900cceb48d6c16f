import BTCPriceSocket
import Testing

@testable import BTCPriceNetworking

@Suite struct XMLAttributesTests {
    private func json(_ document: String) -> String? {
        XMLAttributes.json(Array(document.utf8)[...], of: "R").map { String(decoding: $0.text, as: UTF8.self) }
    }

    @Test(arguments: [
        ("<R a='1' b=\"2\"/><r/><R/><R c='3'></R>", #"[{"a":"1","b":"2"},{"c":"3"}]"#),
        ("\u{FEFF}<R a='\"\\'/>", #"[{"a":"\"\\"}]"#),
        // A name that occurs twice, also after many others.
        ("<R a='1'/><R a='2' b='3' a='2'/>", nil),
        ("<R a='1' \((0..<100).map { "x\($0)=''" }.joined(separator: " ")) a='2'/>", nil),
        ("<R/>", nil), ("", nil),
    ])
    func `the attributes of each element are an object`(document: String, expected: String?) {
        #expect(json(document) == expected)
    }

    /// Each name would otherwise be compared with all before it, which takes minutes.
    @Test(.timeLimit(.minutes(1))) func `an element with very many attributes is refused in a short time`() {
        #expect(json("<R " + (0..<130_000).map { "x\($0)=''" }.joined(separator: " ") + "/>") == nil)
        let many = (0..<4000).map { "x\($0)=''" }.joined(separator: " ")
        #expect(json(String(repeating: "<R \(many)/>", count: 30)) != nil)
    }
}
