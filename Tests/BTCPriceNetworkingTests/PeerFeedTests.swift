import BTCPriceCore
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import BTCPriceNetworking
@testable import BTCPriceSocket

/// A peer that sends its state again and again, as fast as it is read.
private final class FloodingPeer: Sendable {
    private let directory = TemporaryDirectory()
    private let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

    var path: String { "\(directory.path)/peer" }

    init() throws {
        let address = try #require(UnixSocketAddress(path: path))
        let listener = listener
        let isListening = address.withSocketAddress { bind(listener, $0, $1) } == 0 && listen(listener, 8) == 0
        try #require(isListening)
        DispatchQueue(label: "peer").async {
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                Self.serve(connection)
                close(connection)
            }
            close(listener)
        }
    }

    /// Ends the thread.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32) {
        let quote = PriceQuote(
            value: 68_900, currency: "USD", timestamp: ObservationTime.now().wall, source: "kraken", market: "BTC/USD")
        let state = PriceState(
            tick: 1, freshness: .fresh, quote: quote, observedBoottime: 1, confirmation: .single, failure: nil)
        let message = Reply.state(StateMessage(instance: "theirs", state: state), continues: true).encoded()
        readCall(connection)
        guard send(Reply(parameters: ["currencies": .array([])]).encoded(), to: connection) else { return }
        readCall(connection)
        guard send(Reply.methodNotImplemented("GetStatus").encoded(), to: connection) else { return }
        readCall(connection)
        while send(message, to: connection) {}
    }

    private static func readCall(_ connection: Int32) {
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) == 1, byte != 0 {}
    }

    /// - Returns: Whether the connection is open.
    private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
        Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}

@Suite(.timeLimit(.minutes(3))) struct PeerFeedTests {
    @Test func `a peer that sends too much is a failure, and its price is not used`() async throws {
        let peer = try FloodingPeer()
        let feed = PeerFeed(name: "alpha", path: peer.path, ownInstance: "ours", now: { .now() })
        feed.start {}
        var error: PriceLoadingError?
        let end = ContinuousClock.now.advanced(by: .seconds(60))
        while error == nil, ContinuousClock.now < end {
            do throws(PriceLoadingError) {
                _ = try await feed.load()
                await Task.yield()
            } catch let failure {
                error = failure
            }
        }
        #expect(error == .invalidData("more than 100 messages or 256 KiB a second"), "\(String(describing: error))")
        feed.stop()
        peer.stop()
    }
}
