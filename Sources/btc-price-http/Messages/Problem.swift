import BTCPriceSocket
import CommandLine
import NIOCore
import NIOHTTP1

/// Why a request gets no result (RFC 9457, Problem Details for HTTP APIs).
struct Problem: Error, Sendable {
    let status: HTTPResponseStatus
    /// The reason in one sentence. It is never a text of the daemon, because that may name addresses and files.
    let detail: String
    var headers: [String: String]

    init(_ status: HTTPResponseStatus, _ detail: String, headers: [String: String] = [:]) {
        self.status = status
        self.detail = detail
        self.headers = headers
    }

    /// There is no result at the moment.
    static func unavailable(_ detail: String, retryAfter: Int = 1) -> Problem {
        Problem(.serviceUnavailable, detail, headers: ["retry-after": "\(retryAfter)"])
    }

    /// Refuses parameters that a path does not have, so that a typo does not return something else.
    static func check(_ request: GatewayRequest, has names: String...) throws(Problem) {
        for (name, _) in request.parameters where !names.contains(name) {
            let meant = Suggestion.nearest(to: name, among: names).map { "; did you mean '\($0)'?" }
            throw Problem(.badRequest, "There is no parameter '\(name.prefix(32))'\(meant ?? ".")")
        }
    }

    var response: GatewayResponse {
        let body: JSONObject = [
            "type": .string("about:blank"), "title": .string(status.reasonPhrase),
            "status": .integer(Int64(status.code)),
            "detail": .string(detail),
        ]
        var fields = HTTPHeaders([
            ("content-type", "application/problem+json"), ("cache-control", "no-store"),
        ])
        for (name, value) in headers { fields.add(name: name, value: value) }
        return GatewayResponse(
            status: status, headers: fields, body: ByteBuffer(string: JSON.object(body).text + "\n"))
    }
}
