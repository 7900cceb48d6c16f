import ArgumentParser
import BTCPriceAPI

/// The command line of the gateway.
struct GatewayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "btc-price-http",
        abstract: "Serves the price that btc-priced keeps over HTTP.",
        discussion: """
            Examples:
              btc-price-http
              btc-price-http --listen 127.0.0.1:8340 --listen unix:/run/btc-price-http/http.sock
              btc-price-http --listen 172.17.0.1:8340 --hosts host.docker.internal

            Sockets that systemd passes take the place of --listen.

            Exit status: 0 if it was stopped, 1 if it can't start, 64 for a wrong command line.
            """,
        version: "btc-price-http \(Product.version)")

    @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"), completion: .file())
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "Listen at this address and port, or at unix: and a path. May be given several times. (default: \(ListenAddress.standard))",
            valueName: "address"),
        transform: { text in
            guard let address = ListenAddress(text) else {
                throw ValidationError(
                    "'\(text)' is not a valid address: 127.0.0.1:8340, [::1]:8340 or unix:/run/btc-price-http/http.sock"
                )
            }
            return address
        })
    var listen: [ListenAddress] = []

    @Option(
        help: ArgumentHelp(
            "Names to answer to, separated by commas, beside localhost and the addresses that it listens at; '*' for any.",
            valueName: "names"),
        transform: { try entries(of: $0, AllowList.host) })
    var hosts: [String] = []

    @Option(
        help: ArgumentHelp(
            "Origins whose pages may read the price, separated by commas: https://shop.example, chrome-extension://<id>.",
            valueName: "origins"),
        transform: { try entries(of: $0, AllowList.origin) })
    var origins: [String] = []

    @Option(
        help: ArgumentHelp("Treat an older price as missing, unless the request sets max-age.", valueName: "seconds"))
    var maxAge: Int64 = 120

    @Option(help: ArgumentHelp("The most open connections.", valueName: "number"))
    var connections = GatewayLimits().connections

    @Option(
        help: ArgumentHelp(
            "The most open connections of one address; addresses of this machine have no such limit.",
            valueName: "number")
    )
    var connectionsPerAddress = GatewayLimits().connectionsPerAddress

    @Option(help: ArgumentHelp("The most open event streams.", valueName: "number"))
    var eventStreams = GatewayLimits().streams

    /// Parses the command line, or exits. In an error, what it quotes of the arguments is printable.
    static func parseOrExit() -> GatewayCommand {
        (try? parse()) ?? parseOrExit(CommandLine.arguments.dropFirst().map(\.printable))
    }

    private static func entries(
        of text: String, _ read: (Substring) throws(AllowList.Mistake) -> String
    ) throws -> [String] {
        do throws(AllowList.Mistake) {
            return try text.split(separator: ",").map { (entry) throws(AllowList.Mistake) in try read(entry) }
        } catch {
            throw ValidationError(error.description)
        }
    }

    func validate() throws {
        guard (1...31_536_000).contains(maxAge) else { throw ValidationError("--max-age is from 1 to 31536000") }
        for (name, number) in [
            ("--connections", connections), ("--connections-per-address", connectionsPerAddress),
            ("--event-streams", eventStreams),
        ] {
            guard (1...1_000_000).contains(number) else { throw ValidationError("\(name) is from 1 to 1000000") }
        }
    }
}
