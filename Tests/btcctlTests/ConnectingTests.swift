import BTCPriceCore
import BTCPriceFeature
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import BTCPriceSocket
@testable import btcctl

/// A daemon that sends these bytes at each call, and closes the connection.
private final class ClosingDaemon: Sendable {
    private let directory = TemporaryDirectory()
    private let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

    var path: String { "\(directory.path)/socket" }

    init(_ reply: [UInt8]) throws {
        let address = try #require(UnixSocketAddress(path: path))
        let listener = listener
        let isListening = address.withSocketAddress { bind(listener, $0, $1) } == 0 && listen(listener, 8) == 0
        try #require(isListening)
        DispatchQueue(label: "daemon").async {
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                var bytes = [UInt8](repeating: 0, count: 4096)
                if recv(connection, &bytes, bytes.count, 0) > 0 {
                    _ = send(connection, reply, reply.count, Int32(MSG_NOSIGNAL))
                }
                close(connection)
            }
            close(listener)
        }
    }

    /// Ends the thread.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }
}

@Suite struct ConnectingTests {
    private let candle = Candle(start: 1_795_564_800, 11_111)

    private func history(_ paths: [String], _ take: ([Candle]) -> Void) throws(Complaint) {
        try Connecting.withDaemon(SocketSearch.Paths(paths: paths), patience: .seconds(30)) {
            connection throws(ClientError) in
            try connection.history(HistoryQuery(more: true)) { candles, _, _ in take(candles) }
        }
    }

    @Test func `after a connection there is no other daemon`() throws {
        let other = try ClosingDaemon(Reply.history([candle, candle], of: "USD", .minute, next: nil).encoded())
        var reply = Reply.history([candle], of: "USD", .minute, next: nil)
        reply.continues = true
        let first = try ClosingDaemon(reply.encoded())
        var seen = 0
        let complaint = #expect(throws: Complaint.self) { try history([first.path, other.path]) { seen += $0.count } }
        #expect(seen == 1)
        #expect(complaint == .unreachable([.closed(path: first.path)]))
        // A socket without a daemon is passed over.
        seen = 0
        try history(["\(first.path).none", other.path]) { seen += $0.count }
        #expect(seen == 2)
        first.stop()
        other.stop()
    }

    @Test func `the daemon that responded once is the only one`() throws {
        let daemon = try ClosingDaemon(Reply.history([candle], of: "USD", .minute, next: nil).encoded())
        var address = DaemonAddress(socket: daemon.path)
        let path = try Connecting.withSameDaemon(&address) { connection throws(ClientError) in connection.path }
        #expect(path == daemon.path && address.socket == daemon.path)
        daemon.stop()
    }

    @Test func `a price in another currency is not that of the chart, and a derived one is not in doubt`() {
        var candles = ChartCandles(named: nil, span: .hour)
        #expect(candles.append(KindOfDoubt.sure.state, now: 60) == true)
        #expect(candles.append(.empty(of: .eur), now: 61) == false)
        #expect(candles.candles.count == 1)
        for kind in KindOfDoubt.allCases {
            guard let candle = Candle(kind.state, at: 0) else { continue }
            #expect(candle.isDerived == (kind.state.derivation != nil))
            #expect(!candle.isDerived || !candle.isInDoubt)
        }
        #expect(Candle(KindOfDoubt.unconfirmed.state, at: 0)?.isInDoubt == true)
    }

    @Test func `an unknown key of the daemon can't control the terminal`() throws {
        let daemon = try ClosingDaemon(Array("{\"\\u001b[31m\\u202e\":1}\0".utf8))
        let complaint = #expect(throws: Complaint.self) { try history([daemon.path]) { _ in } }
        #expect(complaint?.message.contains("\\u{1b}[31m\\u{202e}") == true, "\(complaint?.message ?? "")")
        #expect(complaint?.message.contains("\u{1B}") == false)
        daemon.stop()
    }

    @Test func `an error has control characters only as escapes`() {
        #expect(Complaint(word: "usage", message: "a\u{1B}b", status: 64).message == "a\\u{1b}b")
    }

    @Test(
        arguments: [
            (22_400, nil, "The price is 22 s old, older than allowed."),
            (
                1_500, "coinbase: HTTP 500",
                "The price is 1.5 s old, older than allowed. Reason: coinbase: HTTP 500"
            ),
            (nil, "paused", "no tick has succeeded since. Paused by an administrator: 'btcctl resume'"),
        ] as [(Int64?, String?, String)])
    func `a price that is too old says how old it is, and why`(age: Int64?, reason: String?, expected: String) {
        let complaint = Complaint.tooOld(PriceTooOld(age: age.map { .milliseconds($0) }, reason: reason))
        #expect(complaint.message.contains(expected), "\(complaint.message)")
        #expect(complaint.status == 75)
    }
}
