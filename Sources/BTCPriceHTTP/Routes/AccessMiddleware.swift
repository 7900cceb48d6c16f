import HTTPTypes
import Hummingbird

/// Refuses what the policy refuses, makes every failure a problem, and adds the headers that every response has.
struct AccessMiddleware: RouterMiddleware {
    let policy: AccessPolicy

    @concurrent func handle(
        _ request: Request, context: GatewayContext,
        next: @concurrent (Request, GatewayContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        let credentials = AccessPolicy.Credentials(
            method: request.method.rawValue, host: host(of: request), origin: request.headers[.origin],
            fetchSite: request.headers[.secFetchSite])
        if let refusal = policy.refusal(of: credentials, context.arrival) {
            response = refusal.response
        } else {
            do {
                response = try await next(request, context)
            } catch let problem as Problem {
                response = problem.response
            } catch let error as any HTTPResponseError {
                response = Problem(error.status, "There is nothing here; see /openapi.json.").response
            } catch {
                response = Problem(.internalServerError, "The request failed.").response
            }
        }
        if policy.origins.isEmpty {
            response.headers[.crossOriginResourcePolicy] = "same-origin"
        } else {
            response.headers[.vary] = [response.headers[.vary], "Origin"].compactMap(\.self).joined(separator: ", ")
            let allowed = policy.allowedOrigin(request.headers[.origin])
            response.headers[.accessControlAllowOrigin] = allowed
            response.headers[.crossOriginResourcePolicy] = allowed == nil ? "same-origin" : "cross-origin"
        }
        return response
    }

    /// The authority of an absolute request target goes before the Host header (RFC 9112, section 3.2.2).
    private func host(of request: Request) -> String? {
        guard let host = request.uri.host else { return request.head.authority }
        return request.uri.port.map { "\(host):\($0)" } ?? host
    }
}

extension HTTPField.Name {
    static let crossOriginResourcePolicy = Self("Cross-Origin-Resource-Policy") ?? .server
    static let secFetchSite = Self("Sec-Fetch-Site") ?? .server
    static let lastEventID = Self("Last-Event-ID") ?? .server
    static let contentSecurityPolicy = Self("Content-Security-Policy") ?? .server
    static let referrerPolicy = Self("Referrer-Policy") ?? .server
}
