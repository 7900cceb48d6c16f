import ArgumentParser
import BTCPriceAPI
import Dispatch
import Glibc

/// The entry point of the simulator.
package enum SimulatorProgram {
    /// Reads the command line and runs until SIGTERM or SIGINT.
    package static func main() async {
        // An error quotes arguments.
        await SimulatorCommand.main(CommandLine.arguments.dropFirst().map(\.printable))
    }
}

struct SimulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exchange-simulator",
        abstract: "Real HTTP endpoints shaped like the exchanges, on loopback, with scripted faults.",
        discussion: """
            Prints a line for each venue with its address, one for the control port, and 'ready'. The daemon is pointed at \
            them with source.<name>.url. POST a fault script to <control>/faults at any time; GET <control>/requests counts, and \
            GET <control>/limits holds the counts against what the exchanges publish. The streams are at the same addresses; \
            GET <control>/streams counts them.
            """)

    @Option(help: ArgumentHelp("Replay this CSV file, a row a request.", valueName: "file"))
    var replay: String?

    @Option(help: ArgumentHelp("The column of the prices.", valueName: "name"))
    var column = "close"

    @Option(
        help: ArgumentHelp(
            "Without a replay: the seed of a random walk. Any, and printed, unless given.", valueName: "number"))
    var seed: UInt64?

    @Option(help: ArgumentHelp("A fault script to begin with.", valueName: "file"))
    var faults: String?

    @Option(help: ArgumentHelp("The first port; 0 for any that are free.", valueName: "port"))
    var port = 0

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(
        help: ArgumentHelp(
            "More exchanges: a file with descriptions, [exchange.NAME], or a directory with such files.",
            valueName: "path"))
    var descriptions: String?

    @Option(
        help: ArgumentHelp(
            "Speak HTTPS with the certificate server.pem and the key server.key of this directory.",
            valueName: "directory"))
    var certificates: String?

    @Option(help: ArgumentHelp("How far away the exchanges are: a round trip in milliseconds.", valueName: "ms"))
    var roundTrip = 0

    @Option(
        help: ArgumentHelp(
            "How often the market trades in a second while a stream is subscribed, 0.1 to 2000.", valueName: "number"))
    var trades = 5.0

    init() {}

    /// Rejects options that exclude each other and values out of range.
    func validate() throws {
        guard replay == nil || seed == nil else { throw ValidationError("--replay and --seed exclude each other") }
        guard (0...10_000).contains(roundTrip) else { throw ValidationError("--round-trip is 0 to 10000") }
        guard (0.1...2000).contains(trades) else { throw ValidationError("--trades is 0.1 to 2000") }
        guard port == 0 || (1024...65_000).contains(port) else { throw ValidationError("--port is 0 or 1024 to 65000") }
    }

    /// Runs until SIGTERM or SIGINT.
    func run() async throws {
        let script = try faults.map { try FaultScript(try text($0)) } ?? .none
        let feed: PriceSeries
        if let replay {
            feed = try PriceSeries(replaying: try text(replay), column: column)
        } else {
            let seed = seed ?? .random(in: 0..<1_000_000)
            print("seed \(seed)")
            feed = PriceSeries(walkSeed: seed)
        }
        let simulator = try await Simulator.start(
            feed: feed, script: script, firstPort: port, host: host, roundTrip: .milliseconds(roundTrip),
            trades: trades, descriptions: descriptions,
            certificates: certificates)
        for venue in VenueName.allCases { print("\(venue.rawValue) \(simulator.url(of: venue))") }
        for (name, url) in simulator.describedURLs { print("\(name) \(url)") }
        print("control \(simulator.controlURL)")
        print("ready")
        // A reader on a pipe waits for this line.
        fflush(nil)
        await terminated()
        await simulator.stop()
    }

    private func text(_ path: String) throws -> String {
        guard let bytes = readFile(path), let text = String(validating: bytes, as: UTF8.self) else {
            throw ValidationError("cannot read \(path) as text")
        }
        return text
    }

    private func terminated() async {
        let signals = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            return DispatchSource.makeSignalSource(signal: number)
        }
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        for source in signals {
            source.setEventHandler { continuation.finish() }
            source.resume()
        }
        for await _ in stream {}
        for source in signals { source.cancel() }
    }
}
