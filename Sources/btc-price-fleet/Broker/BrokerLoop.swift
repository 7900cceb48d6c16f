import BTCPriceCore
import BTCPriceSocket
import CLinux
import Dispatch
import Glibc
import Logging
import Synchronization

private enum Bounds {
    /// The time from the start of a connection until the broker must have accepted it, milliseconds.
    static let connect: Int64 = 10_000
    /// The time between two calls of ``MosquittoClient/tend()``, milliseconds.
    static let tend: Int64 = 1000
    /// The machine was suspended if the boot clock, which counts suspended time, is ahead by more than this, milliseconds.
    static let slept: Int64 = 3000
    /// The time to send the last messages, milliseconds.
    static let farewell: Int64 = 1000
}

/// Keeps a connection to a broker. Its own thread makes all calls to libmosquitto.
final class BrokerLoop<Client: BrokerClient>: Sendable {
    private let settings: BrokerSettings
    private let logger: Logger
    private let perform: @Sendable (Client.Effect) -> Void
    private let signal = EventSignal()
    private let mustStop = Atomic<Bool>(false)
    private let hasStopped = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - logger: Logs each transition in one line.
    ///   - perform: Performs an effect. Called on the loop's thread; must not block.
    init(_ settings: BrokerSettings, logger: Logger, perform: @escaping @Sendable (Client.Effect) -> Void) {
        self.settings = settings
        self.logger = logger
        self.perform = perform
    }

    func start(_ client: Client) {
        // Use a separate queue, because the loop blocks.
        DispatchQueue(label: "io.btcpriced.broker").async {
            clinux_name_thread("broker")
            var run = Run(loop: self, client: client)
            run.run()
            self.hasStopped.signal()
        }
    }

    /// Makes the loop call ``BrokerClient/proceed(canPublish:at:)`` soon.
    func wake() { signal.set() }

    /// Disconnects and ends the thread. Waits for it, but at most 3 s: a name lookup may block the thread.
    func stop() {
        mustStop.store(true, ordering: .releasing)
        wake()
        _ = hasStopped.wait(timeout: .now() + .seconds(3))
    }

    /// The state that only the thread uses.
    private struct Run {
        private enum Phase {
            case waiting(until: BootTime)
            case connecting(MosquittoClient, since: BootTime)
            case connected(MosquittoClient, since: BootTime)

            var link: MosquittoClient? {
                switch self {
                case .waiting: nil
                case .connecting(let link, _), .connected(let link, _): link
                }
            }
        }

        private static var wakeTag: UInt64 { 0 }
        private static var linkTag: UInt64 { 1 }

        private let loop: BrokerLoop
        private var client: Client
        private let epoll = clinux_create()
        private var phase = Phase.waiting(until: .boot)
        private var backoff = Backoff(from: .seconds(1), to: .seconds(80))
        private var lastTend = BootTime.boot
        /// Whether to wait without writing. While it connects, the library always wants to write, even if it waits for the broker.
        private var pausesWriting = false
        /// Whether it has been logged that there is no connection.
        private var hasComplained = false

        init(loop: BrokerLoop, client: Client) {
            self.loop = loop
            self.client = client
        }

        mutating func run() {
            _ = clinux_add(epoll, loop.signal.descriptor, clinux_in, Self.wakeTag)
            perform(client.disconnected("not connected yet", at: .now()))
            while !loop.mustStop.load(ordering: .acquiring) { turn() }
            sayGoodbye()
            close(epoll)
        }

        private mutating func turn() {
            let before = ObservationTime.now()
            let (slept, events) = wait(at: before.boottime)
            let now = ObservationTime.now()
            if slept, let link = phase.link {
                end(link, "the machine slept", at: now)
            }
            for event in events {
                guard event.tag == Self.linkTag else {
                    loop.signal.clear()
                    continue
                }
                guard let link = phase.link else { continue }
                // During a handshake, the library does not notice that the connection is refused or reset. Reading the error clears it.
                let error = event.events & clinux_err != 0 ? Self.error(of: link.descriptor) : nil
                if event.events & clinux_out != 0 { link.write() }
                // Only a read continues a handshake, even one that has not started because there was no connection yet.
                if event.events & ~clinux_out != 0 || isConnecting { link.read() }
                takeEvents(of: link, at: now)
                if event.events & (clinux_err | clinux_hup) != 0, isConnecting {
                    end(link, error ?? "it refuses or closes the connection", at: now)
                }
                pausesWriting = isConnecting && event.events & ~clinux_out == 0
            }
            if let link = phase.link, now.boottime - lastTend >= Bounds.tend {
                lastTend = now.boottime
                pausesWriting = false
                link.tend()
                takeEvents(of: link, at: now)
            }
            switch phase {
            case .waiting(let time) where now.boottime >= time: connect(at: now)
            case .connecting(let link, let since) where now.boottime - since >= Bounds.connect:
                end(link, "no response within \(Bounds.connect / 1000) s", at: now)
            default: break
            }
            perform(client.proceed(canPublish: canPublish, at: now))
            if let link = phase.link { takeEvents(of: link, at: now) }
            register()
        }

        private var canPublish: Bool {
            if case .connected(let link, _) = phase { !link.wantsToWrite } else { false }
        }

        /// Waits until there is something to do.
        /// - Returns: Whether the machine was suspended meanwhile, because the broker may then be gone without notice; and the events.
        private func wait(at boottime: BootTime) -> (slept: Bool, events: [clinux_event]) {
            var next = client.deadline ?? .max
            switch phase {
            case .waiting(let time): next = min(next, time)
            case .connecting, .connected: next = min(next, lastTend + Bounds.tend)
            }
            let timeout = next == .max ? -1 : Int32(clamping: max(0, next - boottime))
            var events = [clinux_event](repeating: clinux_event(), count: 2)
            let begun = SuspendingClock.now
            let count = clinux_wait(epoll, &events, 2, timeout)
            let passed = begun.duration(to: .now).wholeMilliseconds
            let slept = ObservationTime.now().boottime - boottime - passed > Bounds.slept
            return (slept, Array(events.prefix(Int(max(0, count)))))
        }

        private mutating func connect(at now: ObservationTime) {
            do throws(MosquittoClient.Failure) {
                let link = try MosquittoClient(loop.settings, will: client.will)
                // The name lookup may have taken a long time.
                phase = .connecting(link, since: ObservationTime.now().boottime)
                pausesWriting = false
                lastTend = now.boottime
            } catch {
                retry(after: nil, error.reason, at: now)
            }
        }

        private mutating func takeEvents(of link: MosquittoClient, at now: ObservationTime) {
            for event in link.takeEvents() {
                switch event {
                case .connected:
                    phase = .connected(link, since: now.boottime)
                    hasComplained = false
                    loop.logger.info("Connected to the broker at \(loop.settings.address).")
                    perform(client.connected(at: now))
                case .message(let message): perform(client.received(message, at: now))
                case .ended(let reason): end(link, reason, at: now)
                }
            }
        }

        private mutating func end(_ link: MosquittoClient, _ reason: String, at now: ObservationTime) {
            guard phase.link === link else { return }
            var lasted: Duration?
            if case .connected(_, let since) = phase { lasted = .milliseconds(now.boottime - since) }
            retry(after: lasted, reason, at: now)
        }

        private mutating func retry(after lasted: Duration?, _ reason: String, at now: ObservationTime) {
            if let lasted, lasted >= .seconds(10) { backoff.reset() }
            // Add up to half of the wait at random, so that thousands of clients do not reconnect to a broker at once.
            let wait = backoff.next() * Double.random(in: 1...1.5)
            phase = .waiting(until: now.boottime + wait.wholeMilliseconds)
            let text = "the broker at \(loop.settings.address) can't be reached: \(reason)"
            if !hasComplained {
                hasComplained = true
                loop.logger.warning("\(text.prefix(1).uppercased() + text.dropFirst()). Trying again.")
            }
            perform(client.disconnected(text, at: now))
        }

        private mutating func perform(_ actions: [BrokerAction<Client.Effect>]) {
            for action in actions {
                switch action {
                case .effect(let effect): loop.perform(effect)
                case .publish(let message): phase.link?.publish(message)
                case .subscribe(let filter): phase.link?.subscribe(filter)
                case .unsubscribe(let filter): phase.link?.unsubscribe(filter)
                }
            }
        }

        /// Registers the library's socket with epoll. Any call to the library may close it, or open another with the same number.
        private func register() {
            let descriptor = phase.link?.descriptor ?? -1
            guard descriptor >= 0 else { return }
            let events = clinux_in | (phase.link?.wantsToWrite == true && !pausesWriting ? clinux_out : 0)
            if clinux_modify(epoll, descriptor, events, Self.linkTag) != 0 {
                _ = clinux_add(epoll, descriptor, events, Self.linkTag)
            }
        }

        private var isConnecting: Bool {
            if case .connecting = phase { true } else { false }
        }

        /// The pending error of a socket (SO_ERROR, socket(7)); `nil` if there is none.
        private static func error(of descriptor: Int32) -> String? {
            var (number, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size) == 0, number != 0 else { return nil }
            return String(cString: strerror(number))
        }

        private mutating func sayGoodbye() {
            guard case .connected(let link, _) = phase else { return }
            for message in client.farewell() { link.publish(message) }
            loop.signal.clear()
            let end = ObservationTime.now().boottime + Bounds.farewell
            while link.wantsToWrite, ObservationTime.now().boottime < end {
                register()
                let (_, events) = wait(at: ObservationTime.now().boottime)
                for event in events where event.tag == Self.linkTag {
                    if event.events & clinux_out != 0 { link.write() }
                    if event.events & ~clinux_out != 0 { link.read() }
                }
                if !link.takeEvents().isEmpty { break }
            }
            link.disconnect()
        }
    }
}
