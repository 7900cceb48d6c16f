import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import CommandLine

struct GatewayCommand {
    let socket: String?
    let listen: [ListenAddress]
    let hosts: [String]
    let origins: [String]
    /// Seconds.
    let maxAge: Int64
    let requirements: PriceRequirements
    let connections: Int

    static let program = Program(
        Command(
            "btc-price-http", "Serves the price that btc-priced keeps over HTTP.",
            details: """
                Examples:
                  btc-price-http
                  btc-price-http --listen 127.0.0.1:8340 --listen unix:/run/btc-price-http/http.sock
                  btc-price-http --listen 172.17.0.1:8340 --hosts host.docker.internal

                Sockets that systemd passes take the place of --listen.

                Exit status: 0 if it was stopped, 1 if it can't start, 64 for a wrong command line.
                """, options: [socketOption, address, names, pages, age, confirmed, uncertainty, most]),
        version: "btc-price-http \(Product.fullVersion)")

    private static let socketOption = Option("--socket", value: "path", "The daemon's socket.", completion: .files)
    private static let address = Option(
        "--listen", value: "address",
        "Listen at this address and port, or at unix: and a path. May be given several times. Default: \(ListenAddress.standard)."
    )
    private static let names = Option(
        "--hosts", value: "names",
        "Host names to serve besides localhost and the listening addresses, separated by commas; '*' for any.")
    private static let pages = Option(
        "--origins", value: "origins",
        "Origins whose pages may read the price, separated by commas: https://shop.example, chrome-extension://<id>.")
    private static let age = Option(
        "--max-age", value: "seconds",
        "Treat an older price as missing, unless the request sets max-age. Default: 120.")
    private static let confirmed = Option(
        "--confirmed",
        "Treat a price that no other exchange confirms as missing, unless the request sets confirmed.")
    private static let uncertainty = Option(
        "--max-uncertainty", value: "percent",
        "Treat a price whose uncertainty is larger or not known as missing, unless the request sets max-uncertainty: 0.5%."
    )
    private static let most = Option(
        "--connections", value: "number",
        "The maximum number of open connections: half of them may be event streams, and a sixteenth may come from one address of another machine. Default: 2048."
    )

    init(_ line: ParsedLine) throws(UsageError) {
        socket = line.text(Self.socketOption)
        listen = try line.values(Self.address) { text throws(UsageError) in
            guard let address = ListenAddress(text) else {
                throw UsageError("write 127.0.0.1:8340, [::1]:8340 or unix:/run/btc-price-http/http.sock")
            }
            return address
        }
        hosts =
            try line.value(Self.names) { text throws(UsageError) in try Self.entries(of: text, AllowList.host) } ?? []
        origins =
            try line.value(Self.pages) { text throws(UsageError) in try Self.entries(of: text, AllowList.origin) } ?? []
        maxAge = Int64(try line.number(Self.age, in: 1...31_536_000) ?? 120)
        requirements = PriceRequirements(
            trust: line.has(Self.confirmed) ? .confirmed : .all,
            maxUncertainty: try line.value(Self.uncertainty) { text throws(UsageError) in
                guard let percent = PriceRequirements.percent(text) else {
                    throw UsageError("it is a percentage such as 0.5%")
                }
                return percent
            })
        connections = try line.number(Self.most, in: 16...1_000_000) ?? 2048
    }

    private static func entries(
        of text: String, _ read: (Substring) throws(UsageError) -> String
    ) throws(UsageError) -> [String] {
        try text.split(separator: ",").map { (entry) throws(UsageError) in try read(entry) }
    }
}
