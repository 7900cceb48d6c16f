import BTCPriceFeature
import HTTPTypes
import Hummingbird
import NIOCore
import Varlink

/// Why a request gets no result (RFC 9457, Problem Details for HTTP APIs).
struct Problem: Error, Sendable, HTTPResponseError {
    let status: HTTPResponse.Status
    /// In one sentence. Never a text of the daemon, which may name addresses and files.
    let detail: String
    var headers: [HTTPField.Name: String]

    init(_ status: HTTPResponse.Status, _ detail: String, headers: [HTTPField.Name: String] = [:]) {
        self.status = status
        self.detail = detail
        self.headers = headers
    }

    /// Nothing to show at present.
    static func unavailable(_ detail: String, retryAfter: Int = 1) -> Problem {
        Problem(.serviceUnavailable, detail, headers: [.retryAfter: "\(retryAfter)"])
    }

    /// Refuses parameters that a path does not have: a typo must not be answered with something else.
    static func check(_ request: Request, has names: String...) throws(Problem) {
        for (name, _) in request.uri.queryParameters where !names.contains(String(name)) {
            let meant = Suggestion.nearest(to: String(name), among: names).map { "; did you mean '\($0)'?" }
            throw Problem(.badRequest, "There is no parameter '\(String(name).prefix(32))'\(meant ?? ".")")
        }
    }

    var response: Response {
        let body: JSONObject = [
            "type": .string("about:blank"), "title": .string(status.reasonPhrase),
            "status": .integer(Int64(status.code)),
            "detail": .string(detail),
        ]
        var fields: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        for (name, value) in headers { fields[name] = value }
        return Response(
            status: status, headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: JSON.object(body).text + "\n")))
    }

    func response(from request: Request, context: some RequestContext) throws -> Response { response }
}
