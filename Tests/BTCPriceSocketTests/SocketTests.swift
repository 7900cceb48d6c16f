import BTCPriceCore
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BTCPriceSocket

/// The time limit for a reply of the daemon. It is long, because asynchronous replies wait in one queue with all other tests.
private let patience = Duration.seconds(60)

/// The loop with a real socket and the real client.
@Suite(.timeLimit(.minutes(3))) struct SocketTests {
    final class Service {
        let directory = TemporaryDirectory()
        let server: PriceServer
        let path: String
        let box: Log<ServerEvent>

        /// The calls that were passed to the asynchronous handler.
        let asked: Counter

        /// - Parameter before: Each of those calls waits for it.
        init(
            limits: ServerLimits = .fitting(), administrators: Administrators = Administrators(),
            before: @escaping @Sendable () async -> Void = {}
        ) throws {
            let asked = Counter()
            self.asked = asked
            path = "\(directory.path)/io.btcpriced.Price"
            let log = Log<ServerEvent>()
            box = log
            server = try PriceServer(
                listener: ListeningSocket(path: path), instance: "i", limits: limits,
                now: { ObservationTime(wall: Timestamp(milliseconds: 0), boottime: 0) },
                activity: ClientActivity(at: 0), administrators: administrators,
                answer: { call, _, _ in
                    asked.add()
                    await before()
                    let reply: Reply =
                        switch call {
                        case .getPrice(.noCache, _, _):
                            .fetchFailed(
                                FetchFailure(failures: [SourceFailure(source: "binance", error: .refused("HTTP 451"))]))
                        case .getPrice: .state(StateMessage(instance: "i", state: ConnectionTests.sample(99)))
                        case .getMetrics: .metrics([Self.sourceStates])
                        default: Reply()
                        }
                    return CallAnswer(reply)
                },
                report: { log.add($0) })
            try server.start()
        }

        deinit { server.stop() }

        /// More than 1 MiB.
        private static var sourceStates: MetricFamily {
            let labels = [
                MetricFamily.Label("source", "an-exchange-with-a-long-name"), MetricFamily.Label("quote", "USD"),
            ]
            return MetricFamily(
                "btcpriced_source_state", .gauge, "A family",
                samples: (0..<12_000).map { MetricFamily.Sample(labels: labels, value: "\($0)") })
        }

        func publish(_ tick: Int64) {
            server.receive(ConnectionTests.sample(tick), .tick, isFirst: true, kept: nil)
        }
    }

    @Test func `a client calls, fetches, and gets the reason if there is no price`() async throws {
        try await onAThread {
            let service = try Service()
            var connection = try PriceConnection(path: service.path, timeout: patience)
            #expect(try connection.getPrice().state.ticks.number == 99, "nothing is held: it is fetched")
            service.publish(3)
            #expect(try connection.getPrice().state.ticks.number == 3)
            #expect(try connection.getPrice(.remoteFirst).state.ticks.number == 99)
            #expect(
                throws: ClientError.refused(
                    error: "io.btcpriced.Price.FetchFailed", reason: "binance: refused: HTTP 451")
            ) {
                try connection.getPrice(.noCache)
            }
            #expect(try connection.getPrice().instance == "i")
        }
    }

    @Test func `permitted users can change the daemon, and others get an error`() async throws {
        try await onAThread {
            let service = try Service(administrators: Administrators(uid: getuid(), gid: nil))
            var connection = try PriceConnection(path: service.path, timeout: patience)
            try connection.pause()
            try connection.resume()
            // Only the rule. A system test covers the peer credentials from the kernel.
            let rule = Administrators(uid: 900, gid: 800)
            #expect(rule.include(uid: 0, groups: []))
            #expect(rule.include(uid: 900, groups: []))
            #expect(rule.include(uid: 1000, groups: [7, 800]))
            #expect(!rule.include(uid: 1000, groups: [7, 900]))
            #expect(!Administrators(uid: 900, gid: nil).include(uid: 1000, groups: [800]))
            #expect(!Administrators(uid: 900, group: "no-such-group").include(uid: 1000, groups: [.max]))
        }
    }

    @Test func `two hundred watchers get every state in order, for any size of the slices`() throws {
        var limits = ServerLimits.fitting()
        limits.watchersPerTurn = 7
        let service = try Service(limits: limits)
        service.publish(1)
        var watchers: [Watcher] = []
        for _ in 0..<200 { watchers.append(try Watcher(path: service.path)) }
        for watcher in watchers { #expect(try watcher.next() == 1) }
        for tick in 2...6 as ClosedRange<Int64> {
            service.publish(tick)
            // Some watchers leave meanwhile.
            if tick == 4 { watchers.removeSubrange(50..<100) }
            for watcher in watchers { #expect(try watcher.next() == tick) }
        }
    }

    final class Watcher {
        private var connection: PriceConnection

        init(path: String) throws {
            connection = try PriceConnection(path: path, timeout: patience)
            try connection.watch()
        }

        func next() throws -> Int64 { try connection.nextState(timeout: patience).state.ticks.number }
    }

    @Test func `a watch of a currency that is no longer kept ends with the reason`() throws {
        let service = try Service()
        service.publish(1)
        let watcher = try Watcher(path: service.path)
        #expect(try watcher.next() == 1)
        service.server.change([.eur])
        #expect(throws: ClientError.refused(error: PriceInterface.unknownCurrency, reason: "USD")) {
            try watcher.next()
        }
        #expect(throws: ClientError.closed(path: service.path)) { try watcher.next() }
    }

    @Test func `a price that is too old is told with its age`() throws {
        let service = try Service()
        service.publish(1)
        var connection = try PriceConnection(path: service.path, timeout: patience)
        #expect(try connection.getPrice(maxAge: .zero).get().state.ticks.number == 1)
        var old = ConnectionTests.sample(2)
        old.price?.observedBoottime = -90_000
        old.ticks.failure = "x"
        service.server.receive(old, .tick, isFirst: true, kept: nil)
        let refusal = #expect(throws: PriceTooOld.self) { try connection.getPrice(maxAge: .seconds(89)).get() }
        #expect(refusal?.age == .seconds(90) && refusal?.reason == "x")
    }

    @Test func `a call to a service that does not read ends with the time-out`() throws {
        let directory = TemporaryDirectory()
        let path = "\(directory.path)/s"
        let listener = try ListeningSocket(path: path)
        let connection = try ClientConnection(path: path, timeout: .milliseconds(50))
        #expect(throws: ClientError.timedOut(path: path)) {
            try connection.send([UInt8](repeating: 0, count: 16 << 20))
        }
        listener.shutDown()
    }

    @Test func `a watcher that stopped reading gets one old state before the newest`() throws {
        let service = try Service()
        service.publish(1)
        let watcher = try Watcher(path: service.path)
        #expect(try watcher.next() == 1)
        for tick in 2...2000 as ClosedRange<Int64> { service.publish(tick) }
        // The loop has sent all of them when it replies to a later call.
        var other = try PriceConnection(path: service.path, timeout: patience)
        _ = try other.getPrice()
        var seen: [Int64] = []
        while seen.last != 2000 { seen.append(try watcher.next()) }
        #expect(seen == seen.sorted())
        #expect(seen.count <= 2, "\(seen.count) states were queued")
    }

    @Test func `above the limit a client is refused, and accepted after another one has left`() throws {
        var limits = ServerLimits.fitting()
        limits.connections = 3
        let service = try Service(limits: limits)
        service.publish(1)
        var held: [Watcher] = []
        // This user is the daemon's, and may use the reserve.
        for _ in 0..<3 + ServerLimits.reserve { held.append(try Watcher(path: service.path)) }
        for watcher in held { #expect(try watcher.next() == 1) }
        #expect(throws: ClientError.self) { try PriceConnectionProbe.ask(service.path) }
        #expect(service.box.all == [.limitHit(.connections, most: 3, uid: getuid())])
        held.removeLast()
        var answered = false
        // The loop detects the end of a connection a moment later.
        for _ in 0..<1000 where !answered { answered = (try? PriceConnectionProbe.ask(service.path)) != nil }
        #expect(answered)
    }

    @Test func `the limit per user applies separately`() throws {
        var limits = ServerLimits.fitting()
        limits.connectionsPerUser = 1
        let service = try Service(limits: limits)
        service.publish(1)
        var held: [Watcher] = []
        for _ in 0..<1 + ServerLimits.reserve { held.append(try Watcher(path: service.path)) }
        for watcher in held { #expect(try watcher.next() == 1) }
        let refusal = ClientError.refused(error: PriceInterface.tooManyConnections, reason: "connectionsPerUser is 1")
        #expect(throws: refusal) { try PriceConnectionProbe.ask(service.path) }
        #expect(service.box.all == [.limitHit(.connectionsPerUser, most: 1, uid: getuid())])
    }

    @Test func `the metrics of all currencies can be read, but not by a client that does not trust the daemon`()
        async throws
    {
        let service = try Service()
        let path = service.path
        try await onAThread {
            var connection = try PriceConnection(path: path, timeout: patience)
            let families = try connection.getMetrics()
            #expect(families.map(\.samples.count) == [12_000])
            var other = try PriceConnection(
                path: path, timeout: patience, longestReply: PriceConnection.longestReply)
            #expect(
                throws: ClientError.unintelligible(path: path, reason: "a message longer than 1048576 bytes")
            ) { _ = try other.getMetrics() }
        }
    }

    @Test func `above the limit of pending calls a call is refused, and accepted after a reply to another one`()
        async throws
    {
        var limits = ServerLimits.fitting()
        // One user gets three of them.
        limits.pendingCalls = 4
        let gate = Gate()
        let service = try Service(limits: limits) { await gate.pass() }
        let path = service.path
        let asked = service.asked
        try await onAThread {
            var first = try ClientConnection(path: path, timeout: patience)
            var second = try ClientConnection(path: path, timeout: patience)
            var third = try ClientConnection(path: path, timeout: patience)
            let another = try ClientConnection(path: path, timeout: patience)
            try another.send(PriceCall.getStatus.call)
            try first.send(PriceCall.getStatus.call)
            try second.send(PriceCall.getStatus.call)
            // After both were accepted: before that, the third one would be one of the two.
            while asked.count < 3 { usleep(1000) }
            #expect(throws: ClientError.refused(error: PriceInterface.busy, reason: nil)) {
                try third.call(PriceCall.getStatus.call)
            }
            // An administrator's command is still accepted.
            var fourth = try ClientConnection(path: path, timeout: patience)
            try fourth.send(PriceCall.pause.call)
            while asked.count < 4 { usleep(1000) }
            gate.open()
            _ = try fourth.reply()
            _ = try first.reply()
            _ = try second.reply()
            _ = try third.call(PriceCall.getStatus.call)
        }
    }

    /// Blocks callers until it is opened.
    final class Gate: Sendable {
        private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

        func pass() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }

        func open() {
            let waiting = state.withLock { state in
                defer { state = (true, []) }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    enum PriceConnectionProbe {
        static func ask(_ path: String) throws -> Int64 {
            var connection = try PriceConnection(path: path, timeout: patience)
            return try connection.getPrice().state.ticks.number
        }
    }

    @Test func `the loop responds to pings`() throws {
        let service = try Service()
        service.server.ping(41)
        while service.server.lastBeat != 41 { sched_yield() }
    }

    @Test func `a stop ends every connection and removes the file`() throws {
        let service = try Service()
        service.publish(1)
        let watcher = try Watcher(path: service.path)
        #expect(try watcher.next() == 1)
        service.server.stop()
        #expect(throws: ClientError.closed(path: service.path)) { try watcher.next() }
        #expect(access(service.path, F_OK) != 0)
        #expect(throws: ClientError.unreachable(path: service.path, reason: "No such file or directory")) {
            try PriceConnectionProbe.ask(service.path)
        }
    }

    @Test func `a dead daemon's socket is replaced, a live one's and a file are not`() throws {
        let directory = TemporaryDirectory()
        let path = "\(directory.path)/socket"
        let dead = try ListeningSocket(path: path)
        close(dead.descriptor)
        #expect(access(path, F_OK) == 0)
        let live = try ListeningSocket(path: path)
        #expect(throws: SocketError.self) { try ListeningSocket(path: path) }
        live.shutDown()
        #expect(access(path, F_OK) != 0)
        close(open(path, O_CREAT | O_WRONLY, 0o600))
        let refusal = #expect(throws: SocketError.self) { try ListeningSocket(path: path) }
        #expect(refusal?.description.contains("exists and is not a socket") == true)
        #expect(access(path, F_OK) == 0)
        #expect(throws: SocketError.self) { try ListeningSocket(path: "/tmp/" + String(repeating: "x", count: 120)) }
        #expect(throws: SocketError.self) { try ListeningSocket(path: "\(directory.path)/none/socket") }
    }

    @Test func `every user may connect`() throws {
        let directory = TemporaryDirectory()
        let listener = try ListeningSocket(path: "\(directory.path)/socket")
        var status = stat()
        #expect(stat("\(directory.path)/socket", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o666)
        listener.shutDown()
    }
}

extension ClientConnection {
    fileprivate mutating func reply() throws(ClientError) -> JSONValue {
        try decoded(try message(timeout: patience)).printableResult()
    }

    fileprivate mutating func call(_ call: Call) throws(ClientError) -> JSONValue {
        try send(call)
        return try reply()
    }
}
