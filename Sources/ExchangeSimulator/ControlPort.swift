import BTCPriceCore
import NIOCore
import NIOHTTP1

/// The control port: `POST /faults` sets a new fault script, `GET /requests` returns the number of requests to each venue,
/// `GET /limits` the peak number of requests in the time span of each limit, and `GET /streams` the counts of the streams.
/// `POST /price/NAME` multiplies the price of a described exchange by the factor in the body.
struct ControlPort: Sendable {
    let world: World
    let described: DescribedExchanges?

    func answer(_ head: HTTPRequestHead, _ body: ByteBuffer) -> AnsweringHandler.Response {
        let (status, text) = text(head, body)
        return (status, HTTPHeaders([("Content-Length", "\(text.utf8.count)")]), ByteBuffer(string: text))
    }

    private func text(_ head: HTTPRequestHead, _ body: ByteBuffer) -> (HTTPResponseStatus, String) {
        switch (head.method, head.uri) {
        case (.POST, "/faults"):
            do {
                world.set(try FaultScript(String(buffer: body)))
                return (.ok, "")
            } catch {
                return (.badRequest, "\(error)\n")
            }
        case (.GET, "/requests"):
            return (.ok, VenueName.allCases.map { "\($0.rawValue) \(world.requests(of: $0))\n" }.joined())
        case (.GET, "/limits"): return (.ok, world.limits)
        case (.GET, "/streams"):
            return (.ok, VenueName.allCases.map { "\($0.rawValue) \(world.streams(of: $0).text)\n" }.joined())
        case (.POST, let uri) where uri.hasPrefix("/price/"):
            let factor = Price(String(buffer: body))
            let isKnown = factor.map { described?.multiply(String(uri.dropFirst("/price/".count)), by: $0) == true }
            return isKnown == true ? (.ok, "") : (.badRequest, "POST /price/NAME with a factor, such as 1.05\n")
        default: return (.notFound, "POST /faults, GET /requests, GET /limits or GET /streams\n")
        }
    }
}
