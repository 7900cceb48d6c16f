import BTCPriceCore
import BTCPriceVarlink
import FoundationEssentials
import Testing
import Varlink

@testable import BTCPriceServer

/// What a connection does, without a socket.
@Suite struct ConnectionTests {
    /// A connection with its board, and all it has written.
    struct Client {
        var connection: Connection
        var board: Board
        var written = ""

        init(holding state: PriceState? = sample(1), limits: ServerLimits = limits()) {
            connection = Connection(
                service: ServiceInterface(info: Product.info, descriptions: [(PriceInterface.name, "")]), limits: limits
            )
            board = Board(instance: "i")
            if let state { board.show(state, version: UInt64(state.tick)) }
        }

        mutating func sends(_ text: String) -> Connection.Request? {
            connection.received(Array(text.utf8), board: &board, at: 0)
        }

        /// Takes all that waits, `step` bytes at a time.
        mutating func reads(step: Int = .max) -> [String] {
            while let output = connection.output {
                let part = output.prefix(step)
                written += String(decoding: part, as: UTF8.self)
                connection.wrote(part.count)
            }
            defer { written = "" }
            return written.split(separator: "\0").map(String.init)
        }
    }

    static func limits(queued: Int = 4096, message: Int = 1000) -> ServerLimits {
        ServerLimits(
            connections: 10, connectionsPerUser: 10, messageBytes: message, queuedBytes: queued, sendBufferBytes: 4096,
            watchersPerTurn: 2)
    }

    static func sample(_ tick: Int64) -> PriceState {
        PriceState(
            tick: tick, freshness: .fresh,
            quote: PriceQuote(
                value: Decimal(tick), currency: "USD", timestamp: Timestamp(milliseconds: 0), source: "binance",
                market: "BTC/USDT"),
            observedBoottime: 0, confirmation: .single, failure: nil, freshUntil: 2000)
    }

    static let getPrice = #"{"method":"io.btcpriced.Price.GetPrice"}"# + "\0"
    static let watchPrice = #"{"method":"io.btcpriced.Price.WatchPrice","more":true}"# + "\0"

    private func ticks(_ replies: [String]) -> [Int64] {
        replies.compactMap { text in
            (try? Reply(decoding: Array(text.utf8)))?.parameters["state"]?.objectValue?["tick"]?.integerValue
        }
    }

    private func error(_ replies: [String]) -> String? {
        replies.first.flatMap { try? Reply(decoding: Array($0.utf8)) }?.error
    }

    @Test func `a call is answered from what is held`() {
        var client = Client()
        #expect(client.sends(Self.getPrice) == nil)
        #expect(ticks(client.reads(step: 7)) == [1])
        #expect(client.connection.wantsInput)
    }

    @Test func `a call byte by byte is the same call`() {
        var client = Client()
        for character in Self.getPrice { #expect(client.sends(String(character)) == nil) }
        #expect(ticks(client.reads()) == [1])
    }

    @Test func `pipelined calls are answered in order, also around a fetch`() throws {
        var client = Client()
        let fetch = #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"cachePolicy":"noCache"}}"# + "\0"
        let info = #"{"method":"org.varlink.service.GetInfo"}"# + "\0"
        #expect(client.sends(Self.getPrice + fetch + info + Self.getPrice) == .ask(.getPrice(.noCache)))
        #expect(ticks(client.reads()) == [1])
        #expect(!client.connection.wantsInput, "nothing else is looked at while the fetch is under way")
        client.connection.answered(.state(StateMessage(instance: "i", state: Self.sample(7))))
        #expect(client.connection.proceed(board: &client.board, at: 0) == nil)
        let replies = client.reads()
        #expect(replies.count == 3)
        #expect(ticks([replies[0]]) == [7])
        #expect(replies[1].contains("\"product\":\"btc-priced\""))
        #expect(ticks([replies[2]]) == [1])
    }

    @Test func `with nothing held a plain call fetches`() {
        var client = Client(holding: nil)
        #expect(client.sends(Self.getPrice) == .ask(.getPrice(.localFirst)))
    }

    @Test func `a oneway call gets no reply`() {
        var client = Client()
        let oneway = Self.getPrice.replacing("}\0", with: ",\"oneway\":true}\0")
        #expect(client.sends(oneway + Self.getPrice) == nil)
        #expect(ticks(client.reads()) == [1])
        let fetch =
            #"{"method":"io.btcpriced.Price.GetPrice","parameters":{"cachePolicy":"noCache"},"oneway":true}"# + "\0"
        #expect(client.sends(fetch) == .ask(.getPrice(.noCache)))
        client.connection.answered(.state(StateMessage(instance: "i", state: Self.sample(7))))
        #expect(client.reads().isEmpty)
        #expect(client.connection.wantsInput)
    }

    @Test(arguments: [
        ("io.btcpriced.Price.Nope", "org.varlink.service.MethodNotFound"),
        ("io.other.Thing.Get", "org.varlink.service.InterfaceNotFound"),
        ("Nonsense", "org.varlink.service.MethodNotFound"),
        ("io.btcpriced.Price.WatchPrice", "org.varlink.service.ExpectedMore"),
    ])
    func `an unknown call is an error, and the connection goes on`(method: String, expected: String) {
        var client = Client()
        #expect(client.sends(#"{"method":"\#(method)"}"# + "\0") == nil)
        #expect(error(client.reads()) == expected)
        #expect(client.sends(Self.getPrice) == nil)
        #expect(ticks(client.reads()) == [1])
    }

    @Test(arguments: ["nonsense\0", "[]\0", "{\"method\":1}\0", "\0", String(repeating: "x", count: 1001)])
    func `what is no message ends the connection, after what was asked before`(junk: String) {
        var client = Client()
        #expect(client.sends(Self.getPrice + junk) == nil)
        #expect(!client.connection.wantsInput)
        #expect(!client.connection.isFinished)
        #expect(ticks(client.reads()) == [1])
        #expect(client.connection.isFinished)
    }

    @Test func `a client that does not read is read no further`() {
        var client = Client(limits: Self.limits(queued: 1000))
        #expect(client.sends(String(repeating: Self.getPrice, count: 100)) == nil)
        #expect(!client.connection.wantsInput)
        var answered = 0
        while client.connection.wantsOutput {
            answered += client.reads().count
            #expect(client.connection.proceed(board: &client.board, at: 0) == nil)
        }
        #expect(answered == 100)
        #expect(client.connection.wantsInput)
    }

    @Test func `a client that has shut down its sending side still gets its reply`() {
        var client = Client()
        #expect(client.sends(Self.getPrice) == nil)
        client.connection.inputEnded()
        #expect(!client.connection.isFinished)
        #expect(ticks(client.reads()) == [1])
        #expect(client.connection.isFinished)
    }

    @Test func `a watcher gets the current state and then each one`() {
        var client = Client()
        #expect(client.sends(Self.watchPrice) == .watch)
        client.connection.watch(client.board.reply(continues: true, at: 0), version: 1)
        #expect(client.connection.isWatching)
        #expect(!client.connection.wantsInput)
        var seen = ticks(client.reads())
        for tick in 2...5 as ClosedRange<Int64> {
            client.connection.publish(state(tick), version: UInt64(tick))
            seen += ticks(client.reads(step: 11))
        }
        #expect(seen == [1, 2, 3, 4, 5])
    }

    @Test func `a slow watcher gets the newest next, not a backlog`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch(client.board.reply(continues: true, at: 0), version: 1)
        // It has begun to read the first one: that one has to be finished.
        let beginning = client.connection.output?.prefix(10) ?? []
        client.connection.wrote(10)
        for tick in 2...1000 as ClosedRange<Int64> { client.connection.publish(state(tick), version: UInt64(tick)) }
        client.written = String(decoding: beginning, as: UTF8.self)
        #expect(ticks(client.reads()) == [1, 1000])
    }

    @Test func `a state that it has already is not sent twice`() {
        var client = Client()
        _ = client.sends(Self.watchPrice)
        client.connection.watch(state(5), version: 5)
        client.connection.publish(state(4), version: 4)
        client.connection.publish(state(5), version: 5)
        #expect(ticks(client.reads()) == [5])
    }

    @Test func `a state that has grown old is told as stale`() throws {
        var board = Board(instance: "i")
        board.show(Self.sample(1), version: 1)
        func freshness(at boottime: Int64) throws -> String? {
            let bytes = board.reply(continues: false, at: boottime)
            return try Reply(decoding: bytes.dropLast()).parameters["state"]?.objectValue?["freshness"]?.stringValue
        }
        #expect(try freshness(at: 2000) == "fresh")
        #expect(try freshness(at: 2001) == "stale")
        board.show(Self.sample(2), version: 2)
        #expect(try freshness(at: 0) == "fresh")
    }

    private func state(_ tick: Int64) -> [UInt8] {
        Board.reply(Self.sample(tick), instance: "i", continues: true)
    }
}
