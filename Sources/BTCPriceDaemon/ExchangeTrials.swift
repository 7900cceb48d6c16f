import BTCPriceNetworking
import Configuration
import FoundationEssentials
import Systemd

/// `btc-priced --try NAME [FILE]`
enum ExchangeTrials {
    /// The longest saved body that is read, bytes.
    private static let longestBody = 4 << 20

    /// Tries an exchange and prints the report.
    /// - Parameter path: A saved body; `nil` to send requests.
    /// - Returns: Whether it has a price.
    /// - Throws: ``SettingsError`` if there is no such exchange, or a file can't be read.
    static func run(
        _ name: String, body path: String?, _ settings: Settings, environment: [String: String]
    ) async throws(SettingsError) -> Bool {
        guard let source = settings.exchanges.first(where: { $0.name == name }),
            case .exchange(let exchange, let url, let secondURL) = source.kind
        else {
            let names = settings.exchanges.map(\.name).joined(separator: ", ")
            throw SettingsError("there is no exchange '\(name)'; there are \(names)")
        }
        let trial: ExchangeTrial
        if let path {
            guard let body = FileManager.default.contents(atPath: path), body.count <= longestBody else {
                throw SettingsError("cannot read \(path), or it is longer than 4 MiB")
            }
            trial = ExchangeTrial(exchange, body: Array(body))
        } else {
            let loop = TickLoop()
            let client: ExchangeClient
            var key: String?
            do {
                client = try ExchangeClient(settings.clientSettings, on: loop)
                key = try exchange.credential.flatMap { try Credentials(environment: environment).secret($0) }
            } catch {
                throw SettingsError("\(error)")
            }
            trial = await ExchangeTrial(
                exchange, Exchange.Access(client: client, baseURL: url, secondURL: secondURL, key: key))
            await client.shutdown()
            await loop.shutDown()
        }
        print(trial.lines.joined(separator: "\n"))
        return trial.isGood
    }
}
