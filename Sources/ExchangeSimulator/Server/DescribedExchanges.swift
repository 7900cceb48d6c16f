import BTCPriceCore
import BTCPriceNetworking
import Configuration
import NIOCore
import NIOHTTP1
import Synchronization

/// Exchanges that behave as their descriptions say, all at one port: the path of each begins with its name.
final class DescribedExchanges: Sendable {
    /// In the order of their files.
    let names: [String]
    private let descriptions: [String: ExchangeDescription]
    private let factors = Mutex<[String: Price]>([:])
    private let world: World

    /// - Parameter path: A file with descriptions, or a directory with such files.
    /// - Throws: An error if one of them can't be read or is not valid.
    init(path: String, world: World) throws {
        self.world = world
        let folder = ConfigurationFile.paths(in: path)
        let files = try (folder.isEmpty ? [path] : folder).map { try ConfigurationFile(path: $0) }
        let all = try files.flatMap { $0.tables(in: "exchange") }.map { try ExchangeDescription($0.name, $0.table) }
        names = all.map(\.name)
        descriptions = Dictionary(all.map { ($0.name, $0) }, uniquingKeysWith: { _, last in last })
    }

    /// Multiplies the prices of an exchange from now on.
    /// - Returns: Whether there is such an exchange.
    func multiply(_ name: String, by factor: Price) -> Bool {
        guard descriptions[name] != nil else { return false }
        factors.withLock { $0[name] = factor }
        return true
    }

    func response(to uri: String) -> AnsweringHandler.Response {
        let (status, body) = answer(to: uri)
        let headers = HTTPHeaders([
            ("Content-Type", "application/json"), ("Content-Length", "\(body.count)"),
            ("Date", VenueShape.httpDate(secondsFromNow: 0)),
        ])
        return (status, headers, ByteBuffer(bytes: body))
    }

    private func answer(to uri: String) -> (HTTPResponseStatus, [UInt8]) {
        let name = String(uri.dropFirst().prefix { $0 != "/" && $0 != "?" })
        guard let description = descriptions[name] else { return (.notFound, Array("{}".utf8)) }
        let markets = description.requested(by: String(uri.dropFirst(name.utf8.count + 1)))
        guard !markets.isEmpty, let dollars = Price(world.dollars()) else { return (.notFound, Array("{}".utf8)) }
        let factor = factors.withLock { $0[name] ?? 1 }
        let prices = markets.map { market in
            let rate = market.currency.map(Self.rate) ?? 1
            let price = market.pair == Market.pegPair ? 1 : (dollars * rate * factor).rounded(toPlaces: 2)
            return (market, price.description)
        }
        let time = Timestamp(milliseconds: Trade.now() / 1_000_000)
        return (.ok, description.body(prices: prices, time: time, sequence: time.milliseconds))
    }

    /// The price of a dollar. Only its magnitude is real, except for the currencies of the other simulated exchanges.
    private static func rate(of currency: Currency) -> Price {
        if let pair = Pair(rawValue: currency.pair) { return Price("\(pair.rate)") ?? 1 }
        return currency.prices.lowerBound * 3
    }
}
