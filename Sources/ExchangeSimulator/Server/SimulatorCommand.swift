import BTCPriceSocket
import CommandLine
import FoundationEssentials
import Glibc

package struct SimulatorCommand {
    private let feed: PriceSeries
    private let script: FaultScript
    private let port: Int
    private let host: String
    private let descriptions: String?
    private let certificates: String?
    private let roundTrip: Int
    private let trades: Double
    /// The seed to print; `nil` for a replay.
    private let seed: UInt64?

    /// Reads the command line and runs until SIGTERM or SIGINT.
    package static func main() async {
        let command = program.readOrExit(Array(Swift.CommandLine.arguments.dropFirst())) {
            line throws(UsageError) in try SimulatorCommand(line)
        }
        do {
            try await command.run()
        } catch {
            program.fail("\(error)", status: 1)
        }
    }

    static let program = Program(
        Command(
            "exchange-simulator",
            "Simulates the endpoints of the exchanges on loopback, with scripted faults.",
            details: """
                Prints a line for each venue with its address, one for the control port, and 'ready'. The daemon is pointed at \
                them with source.<name>.url. POST a fault script to <control>/faults at any time; GET <control>/requests counts, \
                and GET <control>/limits holds the counts against what the exchanges publish. The streams are at the same \
                addresses; GET <control>/streams counts them.
                """,
            options: [
                replay, column, seedOption, faults, portOption, hostOption, files, folder, distance, pace,
            ]),
        version: "exchange-simulator \(Product.fullVersion)")

    private static let replay = Option(
        "--replay", value: "file", "Replay this CSV file, one row for each request.", completion: .files)
    private static let column = Option("--column", value: "name", "The column of the prices. Default: close.")
    private static let seedOption = Option(
        "--seed", value: "number", "Without --replay: the seed of the random walk. Default: random, and printed.")
    private static let faults = Option(
        "--faults", value: "file", "The first fault script.", completion: .files)
    private static let portOption = Option(
        "--port", value: "port", "The first port. Default: 0, for any free ports.")
    private static let hostOption = Option(
        "--host", value: "address", "The address to listen on. Default: 127.0.0.1.")
    private static let files = Option(
        "--descriptions", value: "path",
        "More exchanges: a file with descriptions, [exchange.NAME], or a directory with such files.",
        completion: .files)
    private static let folder = Option(
        "--certificates", value: "directory",
        "Speak HTTPS with the certificate server.pem and the key server.key of this directory.",
        completion: .directories)
    private static let distance = Option(
        "--round-trip", value: "ms", "The round-trip time to the exchanges, in milliseconds. Default: 0.")
    private static let pace = Option(
        "--trades", value: "number",
        "Trades per second while a stream is subscribed, 0.1 to 2000. Default: 5.")

    init(_ line: ParsedLine) throws(UsageError) {
        if line.has(Self.replay), line.has(Self.seedOption) {
            throw UsageError("--replay and --seed exclude each other")
        }
        port = try line.number(Self.portOption, in: 0...65_000) ?? 0
        host = line.text(Self.hostOption) ?? "127.0.0.1"
        descriptions = line.text(Self.files)
        certificates = line.text(Self.folder)
        roundTrip = try line.number(Self.distance, in: 0...10_000) ?? 0
        trades =
            try line.value(Self.pace) { text throws(UsageError) in
                guard let number = Double(text), (0.1...2000).contains(number) else {
                    throw UsageError("it is a number from 0.1 to 2000")
                }
                return number
            } ?? 5
        script =
            try line.value(Self.faults) { path throws(UsageError) in
                do { return try FaultScript(try Self.text(path)) } catch { throw UsageError("\(error)") }
            } ?? .none
        let given = try line.value(Self.seedOption) { text throws(UsageError) in
            guard let seed = UInt64(text) else { throw UsageError("it is a whole number") }
            return seed
        }
        let column = line.text(Self.column) ?? "close"
        let replayed = try line.value(Self.replay) { path throws(UsageError) in
            do {
                return try PriceSeries(replaying: try Self.text(path), column: column)
            } catch {
                throw UsageError("\(error)")
            }
        }
        let walk = given ?? .random(in: 0..<1_000_000)
        seed = replayed == nil ? walk : nil
        feed = replayed ?? PriceSeries(walkSeed: walk)
    }

    func run() async throws {
        if let seed { print("seed \(seed)") }
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
        // It has nothing to save: a signal ends it.
        await simulator.untilStopped()
    }

    private static func text(_ path: String) throws(UsageError) -> String {
        let bytes = FileManager.default.contents(atPath: path)
        guard let text = bytes.flatMap({ String(validating: $0, as: UTF8.self) }) else {
            throw UsageError("it cannot be read as text")
        }
        return text
    }
}
