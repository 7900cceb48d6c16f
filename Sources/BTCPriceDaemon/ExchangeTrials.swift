import BTCPriceCore
import BTCPriceNetworking
import CommandLine
import Configuration
import Files
import Systemd

/// `btc-priced --try NAME [FILE]`
enum ExchangeTrials {
    /// Tries an exchange, or a source of reference rates, and prints the report.
    /// - Parameter path: A saved body; `nil` to send requests.
    /// - Returns: Whether it has a price, or a rate.
    /// - Throws: ``SettingsError`` if there is no such exchange, or a file can't be read.
    static func run(
        _ name: String, body path: String?, _ settings: Settings, environment: [String: String]
    ) async throws(SettingsError) -> Bool {
        let trial: ExchangeTrial
        var body: [UInt8]?
        if let path {
            do throws(FileFailure) {
                body = try fileContent(path, atMost: 4, mayBePipe: true)
            } catch {
                throw SettingsError("\(error)")
            }
        }
        if let source = settings.exchanges.first(where: { $0.name == name }),
            let exchange = source.exchange
        {
            if let body {
                trial = ExchangeTrial(exchange, body: body)
            } else {
                let key = try key(exchange.credential, environment)
                trial = try await trying(settings) { client, clock in
                    let access = Exchange.Access(
                        client: client, baseURL: source.address, secondURL: source.secondURL, key: key)
                    return await ExchangeTrial(exchange, access, on: clock)
                }
            }
        } else if let rates = settings.allRateSources.first(where: { $0.name == name }) {
            if let body {
                trial = ExchangeTrial(rates, body: body)
            } else {
                let key = try key(rates.description.credential, environment)
                trial = try await trying(settings) { client, clock in
                    await ExchangeTrial(rates, rates.access(client, key: key), on: clock)
                }
            }
        } else {
            let builtIn = settings.exchanges.map(\.name)
            let names =
                builtIn + settings.installed.filter { !builtIn.contains($0) } + settings.allRateSources.map(\.name)
            let advice = Suggestion.advice(on: name, among: names)
            throw SettingsError("there is no exchange '\(name)'; there are \(names.joined(separator: ", "))\(advice)")
        }
        DaemonCommandLine.program.write(trial.lines.map { "\($0)\n" }.joined())
        return trial.isGood
    }

    private static func key(_ credential: String?, _ environment: [String: String]) throws(SettingsError) -> String? {
        do {
            return try credential.flatMap { try Credentials(environment: environment).secret($0) }
        } catch {
            throw SettingsError("\(error)")
        }
    }

    /// Runs a trial that sends requests.
    private static func trying(
        _ settings: Settings, _ run: (ExchangeClient, any BoottimeClock) async -> ExchangeTrial
    ) async throws(SettingsError) -> ExchangeTrial {
        let loop = TickLoop()
        let client: ExchangeClient
        do { client = try ExchangeClient(settings.clientSettings, on: loop) } catch { throw SettingsError("\(error)") }
        let trial = await run(client, loop.clock)
        await client.shutdown()
        await loop.shutDown()
        return trial
    }
}
