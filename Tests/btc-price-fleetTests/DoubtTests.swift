import BTCPriceCore
import BTCPriceSocket
import TestSupport
import Testing

@testable import btc_price_fleet

/// What a publisher says of each kind of doubt, to followers and to Home Assistant.
@Suite struct DoubtTests {
    /// The message on topics that begin so.
    private func published(_ kind: KindOfDoubt, _ topic: String) -> String {
        let news = DaemonNews()
        var publishing = Publishing(name: "alpha", bootID: "b", isForHomeAssistant: true, news: news)
        _ = publishing.connected(at: KindOfDoubt.now)
        news.put(
            StateMessage(instance: "i", state: kind.state), interval: 1000, at: KindOfDoubt.now.boottime)
        let messages = publishing.proceed(canPublish: true, at: KindOfDoubt.now).compactMap { action in
            if case .publish(let message) = action, message.topic.hasPrefix(topic) { message } else { nil }
        }
        return messages.map { String(decoding: $0.payload, as: UTF8.self) }.last ?? "(nothing: it becomes unavailable)"
    }

    @Test func `the table of doubt: the fleet and Home Assistant are told of every kind`() throws {
        var table = DoubtTable()
        let kinds = KindOfDoubt.allCases
        table.add("MQTT, for followers", kinds) { published($0, "btcpriced/v1/alpha/quote/") }
        table.add("MQTT, for Home Assistant", kinds) {
            published($0, FleetTopic.homeAssistant(publisher: "alpha", currency: $0.state.currency).text)
        }
        #expect(try table.isKept(), "\(table.text)")
    }
}
