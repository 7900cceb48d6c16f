import NIOHTTP1

/// The page: one HTML file. Its policy allows nothing but the style and the script that are in it, by their digests, and requests to
/// the gateway itself (W3C, Content Security Policy Level 3).
struct Page: Sendable {
    /// The SHA-256 of what is between the tags in index.html. Tests/System/230-http.py compares them with the page.
    private static let digests = (
        script: "80ZuK/iAwaV/QjqEqm/J2Y8ejFF/WU1wHWHyZSnD9/Q=",
        style: "rCNE5/5/qIWw/grkdVnwGSb7owpvBCzNrMdjXycf3hE="
    )
    private static let policy =
        "default-src 'none'; connect-src 'self'; img-src data:; script-src 'sha256-\(digests.script)'; "
        + "style-src 'sha256-\(digests.style)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private let representation = Representation(
        String(decoding: PackageResources.index_html, as: UTF8.self), contentType: "text/html; charset=utf-8",
        cacheControl: "no-cache")

    func response(to request: GatewayRequest) -> GatewayResponse {
        var response = representation.response(to: request)
        response.headers.add(name: "content-security-policy", value: Self.policy)
        response.headers.add(name: "referrer-policy", value: "no-referrer")
        return response
    }
}
